"""Uniform fills, skipped words and keep-masks: what needs no function beyond fma.

Keeps     torch's words and bits: u24 or u53, one fma, the upper bound replaced by the lower.
Touches   twister.py, convert.py, fill.py.
Not here  integers (integers.py), normals (normal.py)."""

from __future__ import annotations

from flambeau.random.native import layout
from flambeau.random.native.convert import round_bfloat16, widen_bfloat16
from flambeau.random.native.fill import Fill
from flambeau.random.native.twister import (
    stream,
    unit_doubles,
    unit_floats,
    wide_words,
    word_address,
)
from flambeau.random.native.writer import Value


def skip(fill: Fill) -> None:
    """Use up `count` words."""
    fill.f.call("skip_words", fill.state, fill.count)


def words(fill: Fill) -> None:
    """`count` raw outputs of 32 bits."""
    f = fill.f

    def body(words: Value, place: Value) -> None:
        f.store(f.load("<8 x i32>", words), place)

    stream(f, *fill.place, step_elements=8, step_words=8, itemsize=4, body=body)


def uniform_float64(fill: Fill) -> None:
    f = fill.f
    low, span, high = (each.splat(4) for each in fill.parameters("double", "double", "double"))

    def body(words: Value, place: Value) -> None:
        x = f.fma(unit_doubles(f, words), span, low)
        f.store(x.equal(high).choose(low, x), place)

    stream(f, *fill.place, step_elements=4, step_words=8, itemsize=8, body=body)


def uniform_small(fill: Fill, dtype: str) -> None:
    """Parameters: low, span, high rounded to the dtype, low rounded to the dtype; all float32."""
    f = fill.f
    low, span, high, first = (each.splat(8) for each in fill.parameters(*["float"] * 4))

    def body(words: Value, place: Value) -> None:
        x = f.fma(unit_floats(f, words), span, low)
        if dtype == "float32":
            f.store(x.equal(high).choose(first, x), place)
        elif dtype == "float16":
            half = x.cast("fptrunc", "half")
            at_end = half.cast("fpext", "float").equal(high)
            f.store(at_end.choose(first.cast("fptrunc", "half"), half), place)
        else:
            bits = round_bfloat16(x)
            at_end = widen_bfloat16(bits).equal(high)
            f.store(at_end.choose(round_bfloat16(first), bits), place)

    itemsize = 4 if dtype == "float32" else 2
    stream(f, *fill.place, step_elements=8, step_words=8, itemsize=itemsize, body=body)


def bernoulli(fill: Fill) -> None:
    """Bytes 0 or 1: u53 < p, compared as integers with ceil(p * 2^53)."""
    f = fill.f
    (bound,) = (each.splat(4) for each in fill.parameters("i64"))

    def body(words: Value, place: Value) -> None:
        kept = (wide_words(f, words) & (2**53 - 1)) < bound
        f.store(kept.cast("zext", "i8"), place)

    stream(f, *fill.place, step_elements=4, step_words=8, itemsize=1, body=body)


def bernoulli_each(fill: Fill, dtype: str) -> None:
    """Bytes 0 or 1 from as many probabilities; float32 compares u24, float64 u53."""
    f = fill.f
    (source,) = fill.parameters("ptr")
    double = dtype == "float64"
    itemsize, lanes, per_element = (8, 4, 2) if double else (4, 8, 1)
    done = f.variable("i64", 0)
    spill = f.buffer(64)
    with f.forever() as loop:
        first = done.now
        loop.leave_if(first >= fill.count)
        run = f.minimum(fill.count - first, lanes)
        used = run * per_element
        position = f.call("ensure", fill.state, used)
        f.store(position + used, fill.state, layout.POSITION)
        words = word_address(f, fill.state, position)
        unit = unit_doubles(f, words) if double else unit_floats(f, words)
        # Blocks of memory may be read past their end; the lanes behind it are dropped.
        chances = f.load(unit.type, f.at(source, first * itemsize))
        kept = (unit < chances).cast("zext", "i8")
        with f.when(run.equal(lanes)):
            f.store(kept, f.at(fill.target, first))
        with f.when(run < lanes):
            f.store(kept, spill)
            f.copy_bytes(f.at(fill.target, first), spill, run)
        done.set(first + run)
