"""Continuous distributions that transform one uniform each, and rrelu's noise.

Keeps     everything in double, rounded to the dtype at the end; two words an element.
Touches   twister.py, mathematics.py, convert.py, fill.py.
Not here  normals (normal.py), samplers that reject (rejection.py)."""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau.random.native.convert import in_runs, itemsize_of
from flambeau.random.native.fill import Fill
from flambeau.random.native.mathematics import log, log1p, tangent
from flambeau.random.native.writer import Function, Value


def _transform(fill: Fill, formula: Callable[[Value], Value]) -> None:
    f = fill.f

    def generate(buffer: Value, run: Value, _done: Value) -> None:
        f.call("unit_many", fill.state, buffer, run)
        with f.count(run, 4) as i:
            f.store(formula(f.load("<4 x double>", buffer, i << 3)), buffer, i << 3)

    in_runs(f, fill.count, fill.target, fill.dtype, generate)


def exponential(fill: Fill) -> None:
    """Parameter: -1 / rate. log1p(-u) times it."""
    f = fill.f
    (scale,) = (each.splat(4) for each in fill.parameters("double"))
    _transform(fill, lambda u: waiting_time(f, u, scale))


def waiting_time(f: Function, u: Value, scale: Value | float) -> Value:
    """log1p(-u) * scale; + 0.0 turns the -0.0 of u = 0 into torch's 0.0."""
    return log1p(f, -u, is_exact=True) * scale + 0.0


def geometric(fill: Fill) -> None:
    """Parameter: p. ceil(log(u) / log1p(-p))."""
    f = fill.f
    (chance,) = fill.parameters("double")
    divisor = log1p(f, -chance).splat(4)
    _transform(fill, lambda u: f.intrinsic("ceil", log(f, u) / divisor))


def cauchy(fill: Fill) -> None:
    """Parameters: median, sigma."""
    f = fill.f
    median, sigma = (each.splat(4) for each in fill.parameters("double", "double"))
    _transform(fill, lambda u: f.fma(tangent(f, (u - 0.5) * math.pi), sigma, median))


def rrelu_noise(fill: Fill) -> None:
    """Parameters: address of the input (of the noise's dtype), lower, upper.

    An element above zero (or NaN) draws nothing and gets 1; others u * (upper - lower) + lower.
    """
    f = fill.f
    source, lower, upper = fill.parameters("ptr", "double", "double")
    span = upper - lower
    inputs = f.buffer(8 * 64)
    dtype = fill.dtype
    itemsize = itemsize_of(f, dtype)

    def generate(buffer: Value, run: Value, done: Value) -> None:
        f.call("load_doubles", f.at(source, done * itemsize), inputs, run, dtype)
        with f.count(run) as i:
            f.store(f.constant("double", 1.0), buffer, i << 3)
            with f.when(f.load("double", inputs, i << 3) <= 0.0):
                f.store(f.call("unit_double", fill.state) * span + lower, buffer, i << 3)

    in_runs(f, fill.count, fill.target, dtype, generate)
