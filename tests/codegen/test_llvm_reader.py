"""Every plain word, conversion and select gives the vocabulary's bits, for 1, 16 and 32 lanes."""

from __future__ import annotations

import ctypes
import hashlib
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Operand
from flambeau.codegen.vocabulary import THROUGH_INT64
from flambeau.devices.cpu import jit

NUMPY = {
    dtypes.bool_: np.bool_, dtypes.uint8: np.uint8, dtypes.int8: np.int8, dtypes.int16: np.int16,
    dtypes.uint16: np.uint16, dtypes.uint32: np.uint32, dtypes.uint64: np.uint64,
    dtypes.int32: np.int32, dtypes.int64: np.int64, dtypes.float16: np.float16,
    dtypes.bfloat16: np.uint16, dtypes.float32: np.float32, dtypes.float64: np.float64,
}  # fmt: skip
LANES = (1, 16, 32)
INTEGERS = dtypes.INTEGERS
FLOATS = (dtypes.float32, dtypes.float64)


def evaluate(
    formula: Callable[..., Any], result: dtype, inputs: list[tuple[dtype, Any]], lanes: int
) -> np.ndarray:
    """formula(k, *operands) for every element of the inputs, through native code."""
    k = LlvmReader(lanes)
    lines = ["define void @NAME(ptr %args, i64 %begin, i64 %end, ptr %scratch) {", "entry:"]
    for i in range(len(inputs) + 1):
        lines.append(f"  %w{i} = getelementptr i64, ptr %args, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %w{i}")
    lines += ["  br label %loop", "loop:", "  %j = phi i64 [0, %entry], [%next, %loop]"]
    operands = []
    for i, (of, _) in enumerate(inputs):
        scalar = "i8" if of is dtypes.bool_ else SCALAR_TYPES[of]
        k.lines.append(f"  %a{i} = getelementptr {scalar}, ptr %p{i}, i64 %j")
        text = k.emit(f"load {k.type_of(scalar)}, ptr %a{i}, align 1")
        if of is dtypes.bool_:
            text = k.emit(f"icmp ne {k.type_of(scalar)} {text}, {k.splat('0', scalar)}")
        operands.append(Operand(text, of))
    answer = formula(k, *operands)
    assert answer.dtype is result
    text, scalar = answer.text, SCALAR_TYPES[result]
    if result is dtypes.bool_:
        text, scalar = k.emit(f"zext {k.type_of('i1')} {text} to {k.type_of('i8')}"), "i8"
    out = len(inputs)
    k.lines.append(f"  %a{out} = getelementptr {scalar}, ptr %p{out}, i64 %j")
    k.lines.append(f"  store {k.type_of(scalar)} {text}, ptr %a{out}, align 1")
    lines += k.lines
    lines += [
        f"  %next = add i64 %j, {lanes}", "  %more = icmp slt i64 %next, %end",
        "  br i1 %more, label %loop, label %exit", "exit:", "  ret void", "}",
    ]  # fmt: skip
    lines += k.module.declares.values()
    text = "\n".join(lines) + "\n"
    name = "word_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    text = text.replace("@NAME", f"@{name}")
    address = jit.compile_functions({name: text})[name]
    count = max(len(values) for _, values in inputs)
    arrays = []
    for of, values in inputs:
        padded = np.zeros(count + 64, NUMPY[of])
        padded[:count] = np.resize(np.asarray(values, NUMPY[of]), count)
        arrays.append(padded)
    arrays.append(np.zeros(count + 64, NUMPY[result]))
    words = (ctypes.c_int64 * len(arrays))(*(each.ctypes.data for each in arrays))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        address
    )
    call(ctypes.addressof(words), 0, count, None)
    return arrays[-1][:count]


def named(word: str, *literals: Any, literal_first: bool = False) -> Callable[..., Any]:
    """The formula that applies one word, with literals after (or before) the operands."""
    if literal_first:
        return lambda k, *operands: getattr(k, word)(*literals, *operands)
    return lambda k, *operands: getattr(k, word)(*operands, *literals)


def through_float32(of: dtype) -> Callable[..., Any]:
    return lambda k, x: k.convert(k.convert(x, dtypes.float32), of)


def literal_of(value: float, of: dtype) -> Callable[..., Any]:
    return lambda k, x: k.select(x, k.constant(value, of), k.constant(0, of))


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits, any NaN equal to any other."""
    expected = np.asarray(expected, found.dtype)
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        assert np.array_equal(np.isnan(found), np.isnan(expected)), (found, expected)
        keep = ~np.isnan(expected)
        found, expected = found[keep], expected[keep]
    wrong = found.view(f"u{found.itemsize}") != expected.view(f"u{expected.itemsize}")
    assert not wrong.any(), (found[wrong][:5], expected[wrong][:5])


def pairs(values: list[Any]) -> tuple[list[Any], list[Any]]:
    return [a for a in values for _ in values], [b for _ in values for b in values]


def floats(of: dtype) -> list[float]:
    _, largest, smallest = dtypes.FLOAT_FACTS[of]
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.7, math.inf, -math.inf, math.nan]
    return [*special, largest, -largest, smallest, -smallest / 4, 1e-3, -123456.75, 8388609.5]


def integers(of: dtype) -> list[int]:
    low = -(1 << (of.n_bits - 1)) if of.is_signed else 0
    high = (1 << (of.n_bits - of.is_signed)) - 1
    chosen = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, high // 3}
    if of.is_signed:
        chosen |= {-1, -2, -7, -100, low // 3}
    return sorted(chosen)


def wrap(value: int, of: dtype) -> int:
    value &= (1 << of.n_bits) - 1
    return value - (1 << of.n_bits) if of.is_signed and value >> (of.n_bits - 1) else value


@pytest.mark.parametrize("of", FLOATS, ids=repr)
@pytest.mark.parametrize("divisor", [2.0, -0.25, 2.0**-40, 3.0])
def test_divisions_by_literals_are_divisions(of, divisor):
    values = np.array(floats(of), NUMPY[of])
    with np.errstate(all="ignore"):
        expected = values / NUMPY[of](divisor)
    same(evaluate(named("div", divisor), of, [(of, values)], 16), expected)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("of", FLOATS, ids=str)
def test_float_arithmetic(of: dtype, lanes: int) -> None:
    left, right = pairs(floats(of))
    a, b = np.array(left, NUMPY[of]), np.array(right, NUMPY[of])
    with np.errstate(all="ignore"):
        expected = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b,
                    "copysign": np.copysign(a, b)}  # fmt: skip
    for word, answer in expected.items():
        found = evaluate(named(word), of, [(of, a), (of, b)], lanes)
        same(found, answer)
    with np.errstate(all="ignore"):
        single = {"neg": -a, "abs": np.abs(a), "sqrt": np.sqrt(a), "rint": np.rint(a),
                  "floor": np.floor(a), "ceil": np.ceil(a), "trunc": np.trunc(a)}  # fmt: skip
    for word, answer in single.items():
        same(evaluate(named(word), of, [(of, a)], lanes), answer)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("of", FLOATS, ids=str)
def test_extremes_propagate_nan_and_order_zeros(of: dtype, lanes: int) -> None:
    left, right = pairs(floats(of))

    def smallest(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return math.nan
        if x == y == 0:
            return -0.0 if math.copysign(1, x) + math.copysign(1, y) < 2 else 0.0
        return min(x, y)

    low = [smallest(x, y) for x, y in zip(left, right, strict=True)]
    high = [-smallest(-x, -y) for x, y in zip(left, right, strict=True)]
    inputs = [(of, left), (of, right)]
    same(evaluate(lambda k, x, y: k.min(x, y), of, inputs, lanes), np.array(low))
    same(evaluate(lambda k, x, y: k.max(x, y), of, inputs, lanes), np.array(high))
    values = floats(of)
    for limit in (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan):
        low = [smallest(x, limit) for x in values]
        high = [-smallest(-x, -limit) for x in values]
        same(evaluate(named("min", limit), of, [(of, values)], lanes), np.array(low))
        same(
            evaluate(named("max", limit, literal_first=True), of, [(of, values)], lanes),
            np.array(high),
        )


@pytest.mark.parametrize("lanes", LANES)
def test_fma_rounds_once(lanes: int) -> None:
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((2, 500)).astype(np.float32)
    c = (-a * b).astype(np.float32)  # what is left is the rounding error of the product
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    of = dtypes.float32
    found = evaluate(lambda k, x, y, z: k.fma(x, y, z), of, [(of, a), (of, b), (of, c)], lanes)
    assert np.count_nonzero(exact) > 400
    same(found, exact.astype(np.float32))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("of", [*FLOATS, *INTEGERS, dtypes.bool_], ids=str)
def test_comparisons(of: dtype, lanes: int) -> None:
    values: list[Any] = floats(of) if of.is_floating_point else [False, True]
    if of.category == 1:
        values = integers(of)
    left, right = pairs(values)
    a, b = np.array(left, NUMPY[of]), np.array(right, NUMPY[of])
    expected = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    for word, answer in expected.items():
        found = evaluate(named(word), dtypes.bool_, [(of, a), (of, b)], lanes)
        same(found, answer)
    nan = np.isnan(a) if of.is_floating_point else np.zeros(len(a), bool)
    same(evaluate(lambda k, x: k.isnan(x), dtypes.bool_, [(of, a)], lanes), nan)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("of", INTEGERS, ids=str)
def test_integer_words(of: dtype, lanes: int) -> None:
    left, right = pairs(integers(of))

    def quotient(a: int, b: int) -> int:
        return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def modulo(a: int, b: int) -> int:
        return 0 if b == 0 else a - quotient(a, b) * b

    rules: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "min": min, "max": max, "quotient": quotient, "modulo": modulo,
        "and_": lambda a, b: a & b, "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    }  # fmt: skip
    for word, rule in rules.items():
        expected = [wrap(rule(a, b), of) for a, b in zip(left, right, strict=True)]
        found = evaluate(named(word), of, [(of, left), (of, right)], lanes)
        same(found, np.array(expected, NUMPY[of]))
    singles: dict[str, Callable[[int], int]] = {
        "neg": lambda a: -a, "abs": abs, "not_": lambda a: ~a,
    }  # fmt: skip
    for word, alone in singles.items():
        expected = [wrap(alone(a), of) for a in left]
        found = evaluate(named(word), of, [(of, left)], lanes)
        same(found, np.array(expected, NUMPY[of]))
    for divisor in {3, 7, 1 << (of.n_bits - 2), 1, 0, wrap(-1, of)}:
        for word, rule in (("quotient", quotient), ("modulo", modulo)):
            expected = [wrap(rule(a, divisor), of) for a in left]
            found = evaluate(named(word, divisor), of, [(of, left)], lanes)
            same(found, np.array(expected, NUMPY[of]))


@pytest.mark.parametrize("lanes", [16])
@pytest.mark.parametrize("of", [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64], ids=str)
def test_division_of_random_integers(of: dtype, lanes: int) -> None:
    generator = np.random.default_rng(of.n_bits)
    info = np.iinfo(NUMPY[of])
    a = generator.integers(info.min, info.max, 4000, NUMPY[of], endpoint=True)
    b = generator.integers(info.min, info.max, 4000, NUMPY[of], endpoint=True)
    b >>= generator.integers(0, of.n_bits, 4000).astype(b.dtype)
    b[b == 0] = 1
    near = b * np.clip(a, -5, 5)  # exact multiples, one more and one less
    a[:2000] = near[:2000] + generator.integers(-1, 2, 2000).astype(b.dtype)
    expected = [wrap(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), of)
                for x, y in zip(a.tolist(), b.tolist(), strict=True)]  # fmt: skip
    found = evaluate(lambda k, x, y: k.quotient(x, y), of, [(of, a), (of, b)], lanes)
    same(found, np.array(expected, NUMPY[of]))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("of", INTEGERS, ids=str)
def test_shifts_past_the_width(of: dtype, lanes: int) -> None:
    width = of.n_bits
    counts = [n for n in (0, 1, 3, width - 1, width, width + 1, 100, -1) if n >= 0 or of.is_signed]
    values = [a for a in integers(of) for _ in counts]
    steps = counts * len(integers(of))

    def shifted(word: str, a: int, n: int) -> int:
        inside = 0 <= n < width
        if word == "shift_left":
            return wrap(a << n, of) if inside else 0
        if word == "shift_right":
            return a >> n if inside else (-1 if a < 0 else 0)
        return wrap((a & ((1 << width) - 1)) >> n, of) if inside else 0

    for word in ("shift_left", "shift_right", "shift_right_logical"):
        expected = [shifted(word, a, n) for a, n in zip(values, steps, strict=True)]
        inputs = [(of, values), (of, steps)]
        found = evaluate(named(word), of, inputs, lanes)
        same(found, np.array(expected, NUMPY[of]))
        for n in counts:
            expected = [shifted(word, a, n) for a in values]
            found = evaluate(named(word, n), of, [(of, values)], lanes)
            same(found, np.array(expected, NUMPY[of]))


@pytest.mark.parametrize("lanes", LANES)
def test_bool_words(lanes: int) -> None:
    of = dtypes.bool_
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    expected = {"and_": a & b, "or_": a | b, "xor": a ^ b, "min": a & b, "max": a | b}
    for word, answer in expected.items():
        same(evaluate(named(word), of, [(of, a), (of, b)], lanes), answer)
    same(evaluate(lambda k, x: k.not_(x), of, [(of, a)], lanes), ~a)
    numbers = np.array([1.5, 2.5, -3.0, 4.0], np.float32)
    found = evaluate(lambda k, c, x: k.select(c, x, -1), dtypes.float32,
                     [(of, a), (dtypes.float32, numbers)], lanes)  # fmt: skip
    same(found, np.where(a, numbers, np.float32(-1)))


def converted(value: Any, source: dtype, result: dtype) -> Any:
    """What `convert` means, in Python."""
    if result is dtypes.bool_:
        return value != 0
    if result.category == 1:
        if isinstance(value, float):
            through = 63 if result in THROUGH_INT64 else 31
            end = 2**64 if result is dtypes.uint64 else 2**through
            inside = math.isfinite(value) and -(2**through) <= int(value) < end
            value = int(value) if inside else -(2**through)
        return wrap(int(value), result)
    if result is dtypes.float64:
        return float(value)
    single = float(np.float32(value))  # NumPy converts int64 with one rounding
    if result is dtypes.float32 or math.isnan(single):
        return single
    if result is dtypes.float16:
        return float(np.float32(single).astype(np.float16))
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16))[0]


def stored(values: list[Any], of: dtype) -> np.ndarray:
    if of is not dtypes.bfloat16:
        with np.errstate(all="ignore"):
            return np.array(values, NUMPY[of])
    bits = np.array(values, np.float32).view(np.uint32) >> 16
    return bits.astype(np.uint16)


def examples(of: dtype) -> list[Any]:
    if of is dtypes.bool_:
        return [False, True]
    if of.category == 1:
        return [*integers(of), *(wrap(n, of) for n in (2**24 + 1, 2**53 + 1, 2**31, 2**62 + 129))]
    values = floats(of)
    values += [2.0**31, -(2.0**31), 2.0**32 + 2.0**12, 3e9, -3e9, 255.9, -0.9, 300.0, 2.0**63]
    values += [-(2.0**63), 9.2e18, -9.2e18, 1e19, 65519.0, 65520.0, 1e-8, 3.0000001, 1.00390625]
    values += [1.01171875, 4294967295.0, 2147483648.5, -2147483649.0, 1e15 + 0.5, 6e-8, 3.3e38]
    return [converted(each, dtypes.float64, of) for each in values]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", [d for d in dtypes.ALL if not d.is_complex], ids=str)
def test_conversions(source: dtype, lanes: int) -> None:
    with np.errstate(all="ignore"):
        values = examples(source)
        for result in dtypes.ALL:
            if result.is_complex or result is source:
                continue
            found = evaluate(
                named("convert", result), result, [(source, stored(values, source))], lanes
            )
            expected = stored([converted(each, source, result) for each in values], result)
            if result is dtypes.bfloat16:  # compare the numbers, so that NaN is NaN
                found = (found.astype(np.uint32) << 16).view(np.float32)
                expected = (expected.astype(np.uint32) << 16).view(np.float32)
            same(found, expected)


@pytest.mark.parametrize("lanes", LANES)
def test_int64_and_float64_are_exact(lanes: int) -> None:
    generator = np.random.default_rng(7)
    longs = generator.integers(-(2**63), 2**63 - 1, 3000)
    longs >>= generator.integers(0, 63, 3000)
    as_float = evaluate(
        lambda k, x: k.convert(x, dtypes.float64), dtypes.float64, [(dtypes.int64, longs)], lanes
    )
    same(as_float, longs.astype(np.float64))
    doubles = longs.astype(np.float64) * generator.choice([1.0, 0.37, -0.99], 3000)
    found = evaluate(
        lambda k, x: k.convert(x, dtypes.int64), dtypes.int64, [(dtypes.float64, doubles)], lanes
    )
    expected = [converted(float(x), dtypes.float64, dtypes.int64) for x in doubles]
    same(found, np.array(expected))


@pytest.mark.parametrize("lanes", LANES)
def test_every_half_survives_a_round_trip(lanes: int) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    for of in (dtypes.float16, dtypes.bfloat16):
        given = bits.view(np.float16) if of is dtypes.float16 else bits
        found = evaluate(through_float32(of), of, [(of, given)], lanes).view(np.uint16)
        exponent, mantissa = (0x7C00, 0x3FF) if of is dtypes.float16 else (0x7F80, 0x7F)
        nan = (bits & exponent == exponent) & (bits & mantissa != 0)
        assert np.array_equal(found[~nan], bits[~nan])
        assert ((found[nan] & exponent == exponent) & (found[nan] & mantissa != 0)).all()


def test_literals_round_as_convert_does() -> None:
    cases = [(of, value) for of in (dtypes.float16, dtypes.bfloat16)
             for value in examples(dtypes.float32)]  # fmt: skip
    with np.errstate(all="ignore"):
        for of, value in cases:
            found = evaluate(literal_of(value, of), of, [(dtypes.bool_, [True])], 16)
            wanted = stored([converted(value, dtypes.float32, of)], of)
            if math.isnan(value):
                continue
            assert found.view(np.uint16)[0] == wanted.view(np.uint16)[0], value


@pytest.mark.parametrize("lanes", LANES)
def test_bitcasts(lanes: int) -> None:
    values = np.array([1.0, -0.0, 3.5e-20, -7.25], np.float32)
    found = evaluate(lambda k, x: k.bitcast(x, dtypes.int32), dtypes.int32,
                     [(dtypes.float32, values)], lanes)  # fmt: skip
    same(found, values.view(np.int32))
    found = evaluate(lambda k, x: k.bitcast(x, dtypes.uint8), dtypes.uint8,
                     [(dtypes.bool_, [False, True])], lanes)  # fmt: skip
    assert found.tolist() == [0, 1]


def test_equal_words_are_written_once() -> None:
    k = LlvmReader(16)
    x = Operand("%x", dtypes.float32)
    first = k.add(k.mul(x, 2), k.mul(x, 2))
    assert k.add(k.mul(x, 2), k.mul(x, 2)) is first
    assert len(k.lines) == 2
