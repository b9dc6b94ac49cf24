"""Normal fills by torch's two algorithms: one at a time in double, or blocks of sixteen.

Keeps     float32 blocks follow the Cephes polynomials with torch's order of fused steps, so the
          bits are torch's. The second normal of a pair waits in the state, without mean and std.
Touches   twister.py, mathematics.py, convert.py, fill.py.
Not here  which algorithm a tensor gets (random/fills.py)."""

from __future__ import annotations

import math
from typing import Final

from flambeau.random.native import layout
from flambeau.random.native.convert import in_runs, store_float
from flambeau.random.native.fill import Fill
from flambeau.random.native.mathematics import exp, log, log1p, polar
from flambeau.random.native.twister import (
    Body,
    add_unit_many,
    stream,
    unit_doubles,
    unit_floats,
)
from flambeau.random.native.writer import Function, Module, Value

_LOG32: Final = (
    -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_REDUCE32: Final = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)


def add_normals(module: Module) -> None:
    """normals(state, target, count): standard normals in double, at most 64, pairs in order.

    `target` is written up to seven elements past its end.
    """
    add_unit_many(module)
    f = module.function("normals", ["ptr", "ptr", "i64"])
    state, target, count = f.parameters
    kept = f.load("i64", state, layout.HAS_NORMAL)
    first = f.variable("i64", 0)
    with f.when(kept.differs(0) & (count > 0)):
        f.store(f.load("double", state, layout.NORMAL), target)
        _keep(f, state, f.constant("double", 0.0), 0)
        first.set(1)
    missing = count - first.now
    pairs = (missing + 1) >> 1
    place = f.at(target, first.now << 3)
    units = f.buffer(8 * 72)
    f.call("unit_many", state, units, pairs << 1)
    with f.count(pairs, 4) as i:
        low = f.load("<4 x double>", units, i << 4)
        high = f.load("<4 x double>", units, (i << 4) + 32)
        angle = f.shuffle(low, high, [0, 2, 4, 6]) * (2.0 * math.pi)
        chance = f.shuffle(low, high, [1, 3, 5, 7])
        radius = f.sqrt(log1p(f, -chance, is_exact=True) * -2.0)
        cosine, sine = polar(f, radius, angle)
        both = f.shuffle(cosine, sine, [0, 4, 1, 5, 2, 6, 3, 7])
        f.store(both, place, i << 4)
    with f.when((missing & 1).differs(0)):
        _keep(f, state, f.load("double", place, missing << 3), 1)
    f.give()


def add_one_normal(module: Module) -> None:
    """one_normal(state): the next of the same normals, for samplers that want one at a time."""
    f = module.function("one_normal", ["ptr"], "double")
    (state,) = f.parameters
    kept = f.load("i64", state, layout.HAS_NORMAL).differs(0)
    result = f.variable("double", f.load("double", state, layout.NORMAL))
    _keep(f, state, f.constant("double", 0.0), 0)
    with f.when(kept.equal(0)):
        angle = f.call("unit_double", state) * (2.0 * math.pi)
        chance = f.call("unit_double", state)
        cosine, sine = polar(f, f.sqrt(log1p(f, -chance, is_exact=True) * -2.0), angle)
        result.set(cosine)
        _keep(f, state, sine, 1)
    f.give(result.now)


def _keep(f: Function, state: Value, normal: Value, is_valid: int) -> None:
    f.store(normal, state, layout.NORMAL)
    f.store(f.constant("i64", is_valid), state, layout.HAS_NORMAL)


def one_at_a_time(fill: Fill, logarithmic: bool) -> None:
    """Algorithm A; the logarithmic one gives log-normals."""
    f = fill.f
    mean, std = (each.splat(4) for each in fill.parameters("double", "double"))

    def generate(buffer: Value, run: Value, _done: Value) -> None:
        f.call("normals", fill.state, buffer, run)
        with f.count(run, 4) as i:
            z = f.load("<4 x double>", buffer, i << 3)
            x = f.fma(z, std, mean)
            f.store(exp(f, x) if logarithmic else x, buffer, i << 3)

    in_runs(f, fill.count, fill.target, fill.dtype, generate)


def log32(f: Function, x: Value) -> Value:
    """Cephes' single-precision logarithm, fused as torch's AVX2 build is."""
    bits = x.bits_as("<8 x i32>")
    m = ((bits & 0x7FFFFF) | 0x3F000000).bits_as(x.type)
    low = m < 0.707106781186547524
    e = ((bits >> 23) - 126).cast("sitofp", "float")
    e = low.choose(e - 1.0, e)
    m = (m - 1.0) + low.choose(m, 0.0)
    z = m * m
    y = f.constant(x.type, 7.0376836292e-2)
    for coefficient in _LOG32:
        y = f.fma(y, m, coefficient)
    y = f.fma(y * m, z, e * -2.12194440e-4)
    y = f.fma(z, -0.5, y)
    return f.fma(e, 0.693359375, m + y)


def sine_cosine32(f: Function, x: Value) -> tuple[Value, Value]:
    """Cephes' single-precision sine and cosine of x >= 0, fused as torch's AVX2 build is."""
    j = ((x * 1.27323954473516).cast("fptosi", "i32") + 1) & ~1
    turns = j.cast("sitofp", "float")
    for part in _REDUCE32:
        x = f.fma(turns, part, x)
    z = x * x
    c = f.fma(z, 2.443315711809948e-5, -1.388731625493765e-3)
    c = f.fma(c, z, 4.166664568298827e-2) * z
    c = f.fma(c, z, z * -0.5) + 1.0
    s = f.fma(z, -1.9515295891e-4, 8.3321608736e-3)
    s = f.fma(s, z, -1.6666654611e-1) * z
    s = f.fma(s, x, x)
    swaps = (j & 2).differs(0)
    sine = swaps.choose(c, s).bits_as("<8 x i32>") ^ ((j & 4) << 29)
    cosine = swaps.choose(s, c).bits_as("<8 x i32>") ^ (((j - 2) & 4) ^ 4) << 29
    return sine.bits_as(x.type), cosine.bits_as(x.type)


def blocks_small(fill: Fill, dtype: str) -> None:
    """float32 arithmetic. Whole blocks, then the last sixteen places once more from fresh words;
    in float32 the words of the ragged places are drawn first and come to nothing."""
    f = fill.f
    mean, std = (each.splat(8) for each in fill.parameters("float", "float"))
    itemsize = 4 if dtype == "float32" else 2

    def body(words: Value, place: Value) -> None:
        radius = f.sqrt(log32(f, 1.0 - unit_floats(f, words)) * -2.0)
        angle = unit_floats(f, f.at(words, 32)) * (2.0 * math.pi)
        sine, cosine = sine_cosine32(f, angle)
        store_float(f, f.fma(radius * cosine, std, mean), dtype, place)
        store_float(f, f.fma(radius * sine, std, mean), dtype, f.at(place, 8 * itemsize))

    _in_blocks(fill, itemsize, 16, body, skips=dtype == "float32")


def blocks_float64(fill: Fill) -> None:
    """The same in double, two words an element."""
    f = fill.f
    mean, std = (each.splat(4) for each in fill.parameters("double", "double"))

    def body(words: Value, place: Value) -> None:
        for half in (0, 1):
            chance = unit_doubles(f, f.at(words, 32 * half))
            angle = unit_doubles(f, f.at(words, 64 + 32 * half)) * (2.0 * math.pi)
            radius = f.sqrt(log(f, 1.0 - chance) * -2.0)
            cosine, sine = polar(f, radius, angle)
            f.store(f.fma(cosine, std, mean), place, 32 * half)
            f.store(f.fma(sine, std, mean), place, 64 + 32 * half)

    _in_blocks(fill, 8, 32, body, skips=True)


def _in_blocks(fill: Fill, itemsize: int, words: int, body: Body, skips: bool) -> None:
    """Two passes of one loop: the whole blocks, then the last sixteen places if some are ragged."""
    f = fill.f
    ragged = fill.count & 15
    last = f.at(fill.target, (fill.count - 16) * itemsize)
    is_ragged = ragged > 0
    with f.count(is_ragged.choose(f.constant("i64", 2), 1)) as turn:
        is_last = turn > 0
        if skips:
            unused = is_last.choose(ragged * (words // 16), 0)
            f.call("skip_words", fill.state, unused)
        stream(
            f,
            fill.state,
            is_last.choose(last, fill.target),
            is_last.choose(f.constant("i64", 16), fill.count - ragged),
            step_elements=16,
            step_words=words,
            itemsize=itemsize,
            body=body,
            has_tail=False,
        )
