"""Records torch's random draws as the data of tests/random: run it with torch 2.13 installed.

    python tests/recorded/record_random.py

Keeps     each case is one draw after `before` single normals from a seed: its parameters, the
          bytes drawn, and a hash of get_state() afterwards.
Touches   torch; writes random.json beside this file.
Not here  the comparison (tests/random/test_fills.py)."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

FLOATS = ("float32", "float64", "float16", "bfloat16")
SEEDS = (0, 42, 2**40 + 5, -3)
SIZES = (1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 1000)
INPUTS = {
    "rates": [0.0, 0.5, 3.25, 9.5, 10.0, 31.0, 300.0, 60000.0],
    "counts": [0.0, 5.0, 100.0, 100.0, 1000.0, 40.0, 100000.0, 30.0, 7.0],
    "chances": [0.5, 0.0, 0.05, 0.3, 0.45, 0.75, 0.999, 1.0, 0.5],
    "shapes": [0.125, 0.75, 1.0, 2.5, 100.0, 0.015625],
    "weights": [0.125, 0.5, 0.0, 0.25, 0.25, 1.5, 0.75],
    "mixed": [-1.0, 2.0, -2.0, 0.0, -0.5],
}


def tiled(name: str, count: int, dtype: torch.dtype) -> torch.Tensor:
    """`count` inputs, the list of that name over and over."""
    values = INPUTS[name]
    return torch.tensor([values[i % len(values)] for i in range(count)], dtype=dtype)


def filled(method: str) -> Callable[..., torch.Tensor]:
    """The in-place draw of that name on a new contiguous tensor."""
    return lambda count, dtype, *rest: getattr(torch.empty(count, dtype=dtype), method)(*rest)


def strided_normal(count: int, dtype: torch.dtype, mean: float, std: float) -> torch.Tensor:
    return torch.empty(2 * count, dtype=dtype)[::2].normal_(mean, std)


def rrelu(count: int, dtype: torch.dtype, lower: float, upper: float) -> torch.Tensor:
    noise = torch.empty(count, dtype=dtype)
    torch._C._nn.rrelu_with_noise(tiled("mixed", count, dtype), noise, lower, upper, True)
    return noise


def multinomial(count: int, dtype: torch.dtype, draws: int) -> torch.Tensor:
    weights = tiled("weights", 7 * count, dtype).reshape(count, 7)
    return torch.multinomial(weights, draws, True)


DRAWS: dict[str, Callable[..., torch.Tensor]] = {
    "uniform": filled("uniform_"),
    "normal": filled("normal_"),
    "strided_normal": strided_normal,
    "exponential": filled("exponential_"),
    "geometric": filled("geometric_"),
    "cauchy": filled("cauchy_"),
    "log_normal": filled("log_normal_"),
    "random": filled("random_"),
    "permutation": lambda count, dtype: torch.randperm(count, dtype=dtype),
    "bernoulli": filled("bernoulli_"),
    "bernoulli_each": lambda count, dtype: torch.bernoulli(tiled("chances", count, dtype)),
    "poisson": lambda count, dtype: torch.poisson(tiled("rates", count, dtype)),
    "binomial": lambda count, dtype: torch.binomial(
        tiled("counts", count, dtype), tiled("chances", count, dtype)
    ),
    "gamma": lambda count, dtype: torch._standard_gamma(tiled("shapes", count, dtype)),
    "dirichlet": lambda count, dtype: torch._sample_dirichlet(
        tiled("shapes", 6 * count, dtype).reshape(count, 6)
    ),
    "multinomial": multinomial,
    "rrelu": rrelu,
}


def cases() -> Iterator[tuple[str, str, int, list[Any]]]:
    """(draw, dtype, count, parameters) of each case."""
    for name in FLOATS:
        yield from (("uniform", name, count, []) for count in (1, 7, 8, 9, 625, 1500))
        for low, high in ((-1.0, 1.0), (0.1, 0.7), (-3.3, 10.1), (1000.0, 1001.5), (-1.0, 0.0)):
            yield "uniform", name, 300, [low, high]
        for count in SIZES:
            yield "normal", name, count, [0.0, 1.0]
            yield "normal", name, count, [1.7, 0.3]
        yield "normal", name, 40, [1.5, 0.0]
        yield "strided_normal", name, 100, [1.0, 2.0]
        yield from (("exponential", name, count, [2.5]) for count in (1, 63, 64, 65, 333))
        yield from (("geometric", name, 200, [chance]) for chance in (0.3, 0.001))
        yield "cauchy", name, 200, [2.0, 0.7]
        yield "log_normal", name, 77, [0.5, 1.3]
        yield "bernoulli", name, 200, [0.3]
        yield "bernoulli_each", name, 203, []
        yield "poisson", name, 200, []
        yield "multinomial", name, 3, [30]
        if name != "float16":
            yield "rrelu", name, 133, [0.1, 0.3]
        if name in ("float32", "float64"):
            yield from ((draw, name, 180, []) for draw in ("binomial", "gamma"))
            yield "dirichlet", name, 9, []
    yield from integer_cases()


def integer_cases() -> Iterator[tuple[str, str, int, list[Any]]]:
    integers = ("int64", "int32", "int16", "int8", "uint8", "bool")
    yield from (("random", name, 100, []) for name in (*integers, *FLOATS))
    yield from (("geometric", name, 100, [0.01]) for name in integers[:-1])
    for low, high in ((-5, 7), (0, 1), (0, 2**28 - 1), (0, 2**28), (0, 2**32), (-(2**62), 2**62),
                      (-(2**63), 2**63 - 1), (3, None), (-(2**63), None)):  # fmt: skip
        yield "random", "int64", 650, [low, high]
    for name, low, high in (
        ("int32", -(2**31), 2**31 - 1), ("uint8", 0, 256), ("int8", -128, 128), ("bool", 0, 2),
        ("float32", 0, 10), ("float16", 0, 5000), ("bfloat16", -3, 200), ("bfloat16", 0, 1000),
        ("float64", -(2**63), None), ("float32", -(2**63), None), ("bfloat16", -(2**63), None),
        ("float32", 0, 2**24 + 3), ("float32", -(2**25) - 1, 7), ("int16", 5, None),
    ):  # fmt: skip
        yield "random", name, 100, [low, high]
    yield from (("permutation", "int64", count, []) for count in (0, 1, 2, 10, 1000))


def recorded(number: int, draw: str, dtype: str, count: int, rest: list[Any]) -> dict[str, Any]:
    seed, before = SEEDS[number % len(SEEDS)], number % 4
    torch.manual_seed(seed)
    for _ in range(before):
        torch.randn(1)
    result = DRAWS[draw](count, getattr(torch, dtype), *rest).flatten().contiguous()
    state = hashlib.sha256(bytes(torch.get_rng_state().tolist())).hexdigest()[:16]
    values = bytes(result.view(torch.uint8).tolist()) if result.numel() else b""
    return {
        "draw": draw, "dtype": dtype, "count": count, "rest": rest, "seed": seed,
        "before": before, "state": state,
        "values": base64.b64encode(zlib.compress(values, 9)).decode(),
    }  # fmt: skip


def main() -> None:
    import warnings

    warnings.simplefilter("ignore")
    found = [recorded(number, *case) for number, case in enumerate(cases())]
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in found)
    head = f'"torch": "{torch.__version__}", "inputs": {json.dumps(INPUTS)}'
    text = f'{{{head}, "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("random.json").write_text(text)
    print(len(found), "cases,", len(text), "bytes")


if __name__ == "__main__":
    main()
