"""Rounds values to a dtype the way torch's draws do.

Keeps     a double reaches the 16-bit formats by way of float32; an integer out of a format's range
          gives what x86's conversion gives, so nothing is left undefined.
Touches   layout.py, writer.py.
Not here  conversions of tensors (ops/elementwise)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.random.native.layout import DTYPE_CODES
from flambeau.random.native.writer import Function, Module, Value

_ITEMSIZES: Final = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "bool": 1,
}  # fmt: skip
_FLOATS: Final = ("float64", "float32", "float16", "bfloat16")


def round_bfloat16(value: Value) -> Value:
    """Bits of a float rounded to nearest even; NaN stays NaN."""
    bits = value.bits_as(_integers_like(value.type))
    rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    quiet = value.differs(value).choose(0x7FC0, rounded)
    return quiet.cast("trunc", "i16")


def widen_bfloat16(bits: Value) -> Value:
    """Float of the given 16 bits."""
    wide = bits.cast("zext", "i32") << 16
    return wide.bits_as(wide.type.replace("i32", "float"))


def _integers_like(float_type: str) -> str:
    return float_type.replace("float", "i32")


def store_float(f: Function, value: Value, dtype: str, place: Value) -> None:
    """Store floats or doubles as `dtype`."""
    if dtype == "float64":
        f.store(value, place)
        return
    if value.type.find("double") >= 0:
        value = value.cast("fptrunc", "float")
    if dtype == "float16":
        value = value.cast("fptrunc", "half")
    elif dtype == "bfloat16":
        value = round_bfloat16(value)
    f.store(value, place)


def _double_to_integer(f: Function, value: Value, dtype: str) -> Value:
    """Toward zero; what does not fit is the most negative number, as cvttsd2si gives."""
    inside = (value < 2.0**63).choose(value, 0.0)
    inside = (inside >= -(2.0**63)).choose(inside, 0.0)
    fits = value.equal(inside)
    whole = fits.choose(inside.cast("fptosi", "i64"), -(2**63))
    if dtype == "int32":
        small = f.intrinsic("fabs", inside) < 2.0**31
        whole = (small & fits).choose(whole, -(2**31))
    return whole


def add_store_doubles(module: Module, dtypes: tuple[str, ...] = _FLOATS) -> None:
    """store_doubles(source, target, count, dtype): a short run of doubles as another dtype.

    Floats go four at a time: `source` must be readable past its end, `target` is not written
    past its own.
    """
    f = module.function("store_doubles", ["ptr", "ptr", "i64", "i64"])
    source, target, count, dtype = f.parameters
    whole = count - (count & 3)
    for name in dtypes:
        itemsize = _ITEMSIZES[name]
        with f.when(dtype.equal(DTYPE_CODES[name])):
            start = f.variable("i64", 0)
            if name in _FLOATS:
                with f.count(whole, 4) as i:
                    values = f.load("<4 x double>", source, i << 3)
                    store_float(f, values, name, f.at(target, i * itemsize))
                start.set(whole)
            first = start.now
            with f.count(count - first) as i:
                value = f.load("double", source, (first + i) << 3)
                place = f.at(target, (first + i) * itemsize)
                if name in _FLOATS:
                    store_float(f, value, name, place)
                else:
                    _store_integer(f, _double_to_integer(f, value, name), name, place)
    f.give()


def _store_integer(f: Function, value: Value, dtype: str, place: Value) -> None:
    if dtype == "bool":
        value = value.differs(0).cast("zext", "i8")
    elif dtype != "int64":
        value = value.cast("trunc", f"i{8 * _ITEMSIZES[dtype]}")
    f.store(value, place)


def add_store_integers(module: Module) -> None:
    """store_integers(source, target, count, dtype): a short run of int64 as another dtype."""
    f = module.function("store_integers", ["ptr", "ptr", "i64", "i64"])
    source, target, count, dtype = f.parameters
    for name in DTYPE_CODES:
        if name.startswith("u"):  # the code of integers with a sign: the same bytes
            continue
        with f.when(dtype.equal(DTYPE_CODES[name])), f.count(count) as i:
            value = f.load("i64", source, i << 3)
            place = f.at(target, i * _ITEMSIZES[name])
            if name in _FLOATS:
                target_type = "double" if name == "float64" else "float"
                store_float(f, value.cast("sitofp", target_type), name, place)
            else:
                _store_integer(f, value, name, place)
    f.give()


def add_load_doubles(module: Module) -> None:
    """load_doubles(source, target, count, dtype): a short run of floats as doubles."""
    f = module.function("load_doubles", ["ptr", "ptr", "i64", "i64"])
    source, target, count, dtype = f.parameters
    for name in _FLOATS:
        with f.when(dtype.equal(DTYPE_CODES[name])), f.count(count) as i:
            f.store(load_double(f, f.at(source, i * _ITEMSIZES[name]), name), target, i << 3)
    f.give()


def load_double(f: Function, place: Value, dtype: str) -> Value:
    """One float of `dtype` as a double."""
    if dtype == "float64":
        return f.load("double", place)
    if dtype == "bfloat16":
        return widen_bfloat16(f.load("i16", place)).cast("fpext", "double")
    return f.load("float" if dtype == "float32" else "half", place).cast("fpext", "double")


Generate = Callable[[Value, Value, Value], None]  # (address of doubles, how many, already done)


def in_runs(
    f: Function,
    count: Value,
    target: Value,
    dtype: Value,
    generate: Generate,
    store: str = "store_doubles",
) -> None:
    """Fill `target` through a buffer of 64 elements of 8 bytes, converted run by run."""
    buffer = f.buffer(64 * 8 + 64)
    itemsize = itemsize_of(f, dtype)
    with f.count(count, 64) as done:
        run = f.minimum(count - done, 64)
        generate(buffer, run, done)
        f.call(store, buffer, f.at(target, done * itemsize), run, dtype)


def itemsize_of(f: Function, dtype: Value) -> Value:
    """Bytes of an element of the dtype with this code, from a packed table of nibbles."""
    table = 0
    for name, size in _ITEMSIZES.items():
        table |= size << (4 * DTYPE_CODES[name])
    return (f.constant("i64", table) >> (dtype << 2)) & 15
