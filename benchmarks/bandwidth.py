"""Fused additions and products over 10 million floats beside the fastest copies, in turn.

    python benchmarks/bandwidth.py [--rounds 40]

Keeps     bytes read plus bytes written a second, least times; everything is on all threads and into
          memory that was written before.
Touches   only flambeau.
Not here  whole workloads (run.py)."""

import argparse
import ctypes
import os
import platform
import sys
import time
from array import array
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

N = 10_000_000
CHUNK = 16_384

COPY = """
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %from = load ptr, ptr %args
  %to_at = getelementptr i64, ptr %args, i64 1
  %to = load ptr, ptr %to_at
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %source = getelementptr <{lanes} x float>, ptr %from, i64 %i
  %target = getelementptr <{lanes} x float>, ptr %to, i64 %i
  %value = load <{lanes} x float>, ptr %source, align {bytes}
  store <{lanes} x float> %value, ptr %target, align {bytes}{hint}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
!0 = !{{i32 1}}
"""


def copies():
    """{name: function that copies N floats}: plain stores and streaming ones."""
    from flambeau.devices.cpu import features, jit, memory, runner

    lanes = features.vector_bits() // 32
    blocks = [memory.allocate(4 * N) for _ in range(2)]
    for block in blocks:
        ctypes.memset(block.address, 1, 4 * N)  # else reading it reads one page of zeros
    nothing = array("q", (0,))
    found = {}
    for name, hint in (("copy", ""), ("copy, streaming stores", ", !nontemporal !0")):
        kernel = "bandwidth_" + ("streaming" if hint else "plain")
        text = COPY.format(name=kernel, lanes=lanes, bytes=4 * lanes, hint=hint)
        address = jit.compile_functions({kernel: text})[kernel]
        # One kernel with two arguments, see runner/words.py.
        program = array("q", (1, 2, 0, 0, address, N // lanes, CHUNK // lanes, 2, 0, 0))
        program.extend([block.address for block in blocks])

        def copy(program=program, keep=blocks):
            runner.run(program, nothing, nothing)

        found[name] = (copy, 8 * N)
    return found


def fused():
    """{name: (function, bytes it reads and writes)} of kernels that only add and multiply."""
    import flambeau as torch

    a, b, c = (torch.rand(N) for _ in range(3))
    return {
        "2 x + 1": (lambda: (2 * a + 1).data_ptr(), 8 * N),
        "a + b": (lambda: (a + b).data_ptr(), 12 * N),
        "a b + c": (lambda: (a * b + c).data_ptr(), 16 * N),
        "3 (a - b)^2 + c": (lambda: (3 * (a - b) * (a - b) + c).data_ptr(), 16 * N),
        "a += b": (lambda: a.add_(b).data_ptr(), 12 * N),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    steps = copies() | fused()
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(options.rounds):
        for name, (step, _) in steps.items():
            step()
            for _ in range(3):
                start = time.perf_counter()
                step()
                least[name] = min(least[name], time.perf_counter() - start)
    rates = {name: n_bytes / least[name] / 1e9 for name, (_, n_bytes) in steps.items()}
    best = max(rate for name, rate in rates.items() if name.startswith("copy"))
    print(f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}\n")
    print("| kernel over 10M floats | ms | GB/s | of the best copy |\n|---|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {1e3 * least[name]:.2f} | {rate:.1f} | {rate / best:.2f} |")


if __name__ == "__main__":
    main()
