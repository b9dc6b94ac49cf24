"""float64 log, exp, sin, cos, tan and power of the fills, against mpmath and glibc's bits."""

from __future__ import annotations

import ctypes
import math
import random
import struct
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import mpmath
import pytest

from flambeau.devices.cpu.jit import compile_functions
from flambeau.random.native import mathematics
from flambeau.random.native.writer import Function, Module, Value

Formula = Callable[[Function, Value], Value]
COUNT = 4000


def applied(name: str, formula: Formula, arguments: list[float], kind: str) -> list[float]:
    """The formula over all arguments, compiled for one lane or four."""
    module = Module()
    f = module.function("ENTRY", ["ptr", "i64", "i64", "ptr"], is_internal=False)
    source, target = (f.load("ptr", f.parameters[0], 8 * word) for word in (0, 1))
    with f.count(f.load("i64", f.parameters[0], 16), 4 if kind != "double" else 1) as i:
        f.store(formula(f, f.load(kind, source, i << 3)), target, i << 3)
    f.give()
    text = module.text()
    full_name = f"test_{name}_{sha256(text.encode()).hexdigest()[:16]}"
    address = compile_functions({full_name: text.replace("@ENTRY(", f"@{full_name}(")})[full_name]
    size = len(arguments) + 8
    inputs, outputs = (ctypes.c_double * size)(*arguments), (ctypes.c_double * size)()
    words = (ctypes.c_uint64 * 3)(
        ctypes.addressof(inputs), ctypes.addressof(outputs), len(arguments)
    )
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)
    entry(ctypes.addressof(words), 0, 1, 0)
    return list(outputs[: len(arguments)])


def sine(f: Function, x: Value) -> Value:
    return mathematics.sine_cosine(f, x)[0]


def cosine(f: Function, x: Value) -> Value:
    return mathematics.sine_cosine(f, x)[1]


def log1p_of_multiples(f: Function, x: Value) -> Value:
    return mathematics.log1p(f, x, is_exact=True)


def power(f: Function, x: Value) -> Value:
    return mathematics.power(f, x, f.constant(x.type, 7.25))


def near(center: float, count: int = 40) -> list[float]:
    values, below, above = [center], center, center
    for _ in range(count):
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
        values += [below, above]
    return values


UNITS = [1 - 2.0**-53, 2.0**-53, 2.0**-30, 0.5, 1.0, *near(math.sqrt(0.5))]
ANGLES = [0.0, *(v for k in range(1, 8) for v in near(k * math.pi / 4) if v < 2 * math.pi)]
HALF_TURNS = [-math.pi / 2, 0.0, *near(-math.pi / 4), *near(math.pi / 4)]
FUNCTIONS: dict[str, tuple[Formula, Any, tuple[float, float], list[float], float]] = {
    "log": (mathematics.log, mpmath.log, (0.0, 1.0), UNITS, 0.54),
    "log_wide": (mathematics.log, mpmath.log, (0.0, 1e12), [1.0, 2.0, 1e300], 0.54),
    "log1p": (mathematics.log1p, mpmath.log1p, (-1.0, 0.0), [-1e-18, -1 + 2.0**-53], 0.9),
    "log1p_of_multiples": (
        log1p_of_multiples,
        mpmath.log1p,
        (-1.0, 0.0),
        [-x for x in UNITS[:4]],
        0.9,
    ),
    "exp": (mathematics.exp, mpmath.exp, (-700.0, 700.0), [0.0, 1.0, 1e-300], 0.54),
    "exp_small": (mathematics.exp, mpmath.exp, (-1.0, 1.0), [], 0.54),
    "sine": (sine, mpmath.sin, (0.0, 2 * math.pi), ANGLES, 0.57),
    "cosine": (cosine, mpmath.cos, (0.0, 2 * math.pi), ANGLES, 0.57),
    "tangent": (mathematics.tangent, mpmath.tan, (-math.pi / 2, math.pi / 2), HALF_TURNS, 0.62),
    "power": (power, lambda x: x ** mpmath.mpf(7.25), (1e-6, 1.0), UNITS[1:], 0.7),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ["double", "<4 x double>"])
def test_accuracy(name: str, kind: str, seed: int) -> None:
    """The result is within the stated ulp of the exact value, at random and at awkward points."""
    formula, exact, (low, high), special, max_ulp = FUNCTIONS[name]
    draw = random.Random(seed)
    arguments = special + [draw.uniform(low, high) for _ in range(COUNT)]
    if name == "log1p_of_multiples":  # what the generator draws
        arguments = [round(x * 2**53) * 2.0**-53 for x in arguments]
    arguments = [x for x in arguments if x or name not in ("log", "log_wide")]
    results = applied(name, formula, arguments, kind)
    worst = (0.0, 0.0)
    with mpmath.workprec(160):
        for x, result in zip(arguments, results, strict=True):
            wanted = exact(mpmath.mpf(x))
            if abs(wanted) > 2.0**-1000:
                error = float(abs(wanted - result) / math.ulp(float(wanted)))
                worst = max(worst, (error, x))
    assert worst[0] <= max_ulp, worst


def test_lanes_agree() -> None:
    """One lane and four give the same bits."""
    draw = random.Random(5)
    arguments = [draw.uniform(0.0, 6.28) for _ in range(1000)]
    for name in ("log", "exp", "sine", "cosine", "tangent", "power"):
        formula = FUNCTIONS[name][0]
        one, four = (applied(name, formula, arguments, k) for k in ("double", "<4 x double>"))
        assert one == four, name


# sha256 of glibc 2.36's results, on a processor with FMA, for the arguments below.
GLIBC = {
    "log": "9188e0be760b4f41",
    "log1p": "0cec41011f00ca01",
    "exp_small": "a2605cbdfe5249e3",
    "sine": "34b5cc190274cd95",
    "cosine": "0617d0557b169541",
    "tangent": "89fc44d0158d62b6",
    "power": "fe86e293e6707619",
}


def test_bits_are_glibcs() -> None:
    """Which of two doubles near the exact value comes out is the C library's choice."""
    draw = random.Random(7)
    found = {}
    for name in ("log", "log1p", "exp_small", "sine", "cosine", "tangent", "power"):
        formula, _, (low, high), special, _ = FUNCTIONS[name]
        arguments = special + [draw.uniform(low, high) for _ in range(COUNT)]
        results = applied(name, formula, arguments, "<4 x double>")
        found[name] = sha256(struct.pack(f"<{len(results)}d", *results)).hexdigest()[:16]
    assert found == GLIBC


def test_ends() -> None:
    """Zero, overflow and underflow."""
    assert applied("log", mathematics.log, [0.0], "double") == [-math.inf]
    ends = applied("exp", mathematics.exp, [-1e9, 1e9, 709.5, -740.0], "double")
    assert ends[:2] == [0.0, math.inf]
    assert ends[2] == pytest.approx(math.exp(709.5), rel=1e-15)
    assert 0 < ends[3] < 1e-320
