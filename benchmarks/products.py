"""Matrix products beside NumPy's, in turn, on one thread and on two, for both vector widths.

    python benchmarks/products.py [--rounds 20] [--bits 512,256]

Keeps     both take turns in one process with pauses between, since NumPy's threads go on spinning;
          least times are compared, so that a busy machine does less harm. NumPy writes into an
          array that is there. Where flambeau's vectors have 256 bits NumPy's have, too.
Touches   child processes, one for each number of threads and width.
Not here  whole workloads (run.py)."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from workers import environment

SHAPES = (
    *((size, size, size) for size in (256, 384, 512, 768, 1024, 1536, 2048)),
    (128, 784, 512), (1024, 128, 512), (1024, 512, 128),
)  # fmt: skip
ROUND_S = 0.02  # how long one of the two works before it is the other's turn
PAUSE_S = 0.05  # OpenBLAS's threads go on spinning for 2**26 cycles, some 25 ms


def least_of_round(step):
    """Least seconds of a function in the time it has."""
    time.sleep(PAUSE_S)
    step()
    least = float("inf")
    end = time.perf_counter() + ROUND_S
    start = 0.0
    while start < end:
        start = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - start)
    return least


def measure(rounds):
    """[seconds of flambeau, of NumPy] for every shape, under this process's settings."""
    import numpy

    import flambeau

    rng = numpy.random.default_rng(0)
    pairs = []
    for m, k, n in SHAPES:
        left = rng.standard_normal((m, k), dtype=numpy.float32)
        right = rng.standard_normal((k, n), dtype=numpy.float32)
        out = numpy.empty((m, n), numpy.float32)
        own = flambeau.tensor(left), flambeau.tensor(right)
        pairs.append(
            (
                lambda own=own: (own[0] @ own[1]).data_ptr(),
                lambda left=left, right=right, out=out: numpy.matmul(left, right, out=out),
            )
        )
    least = [[float("inf")] * 2 for _ in pairs]
    for _ in range(rounds):
        # All shapes in each round: what else the machine does hits no shape alone.
        for pair, best in zip(pairs, least, strict=True):
            best[:] = map(min, best, map(least_of_round, pair))
    return least


def measured(threads, bits, rounds):
    """`measure` in a process with so many threads and such vectors."""
    settings = environment(
        FLAMBEAU_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
        FLAMBEAU_VECTOR_BITS=str(bits),
    )  # fmt: skip
    if bits == 256:
        settings["OPENBLAS_CORETYPE"] = "Haswell"
    command = [sys.executable, str(Path(__file__).resolve()), "--child", "--rounds", str(rounds)]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def table(figures):
    """Markdown: GFLOP/s of both and their ratio, for each number of threads."""
    lines = [
        "| product | 1 thread | NumPy | ratio | 2 threads | NumPy | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for (m, k, n), *pairs in zip(SHAPES, *figures, strict=True):
        cells = [f"{m} x {k} x {n}"]
        for own, other in pairs:
            operations = 2e-9 * m * k * n
            cells += [f"{operations / own:.0f}", f"{operations / other:.0f}", f"{other / own:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bits", default="512,256")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.rounds)))
        return
    for bits in map(int, options.bits.split(",")):
        figures = [measured(threads, bits, options.rounds) for threads in (1, 2)]
        print(f"\n{bits}-bit vectors, GFLOP/s\n\n{table(figures)}", flush=True)


if __name__ == "__main__":
    main()
