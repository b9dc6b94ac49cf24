"""The C text of small formulas, letter for letter, and of every math word in outline."""

from __future__ import annotations

import re

import pytest

from flambeau.base import dtypes
from flambeau.codegen.c_reader import literal, statements
from flambeau.codegen.vocabulary import BUILDER, MATH_WORDS

K = BUILDER


def load(i=0, of=dtypes.float32):
    return K.apply("load", (), of, i)


def text(expression):
    return statements({"y": expression})


def test_one_statement_a_word_and_shared_parts_once():
    square = K.mul(load(), load())
    assert text(K.fma(square, square, 0.5)) == (
        "float t0 = load_0 * load_0;\nfloat t1 = fma(t0, t0, 0x1.0000000000000p-1f);\nfloat y = t1;"
    )


def test_results_share_statements():
    square = K.mul(load(), load())
    assert statements({"a": square, "b": K.neg(square)}) == (
        "float t0 = load_0 * load_0;\nfloat a = t0;\nfloat t2 = -t0;\nfloat b = t2;"
    )


def test_exponential_of_float32():
    written = text(K.exp(load()))
    assert written.splitlines()[:6] == [
        "bool t0 = load_0 > 0x1.6600000000000p+6f;",
        "float t1 = t0 ? 0x1.6600000000000p+6f : load_0;",
        "bool t2 = t1 < (-0x1.6000000000000p+7f);",
        "float t3 = t2 ? (-0x1.6000000000000p+7f) : t1;",
        "float t4 = fma(t3, 0x1.7154760000000p+0f, 0x1.8001fc0000000p+23f);",
        "float t5 = t4 - 0x1.8001fc0000000p+23f;",
    ]
    assert written.splitlines()[-1] == "float y = t22;"


@pytest.mark.parametrize("of", [dtypes.float32, dtypes.float64], ids=repr)
@pytest.mark.parametrize("name", MATH_WORDS)
def test_math_words_are_written_out(name, of):
    """Every name is defined before it is used, and nothing but plain calls is called."""
    operands = tuple(load(i, of) for i in range(2 if name in ("pow", "atan2", "fmod") else 1))
    lines = text(K.apply(name, operands, of)).splitlines()
    known = {"load_0", "load_1"}
    for line in lines:
        kind, target, value = re.fullmatch(r"(\w+) (\w+) = (.*);", line).groups()
        assert kind in ("float", "double", "int", "long", "bool")
        assert set(re.findall(r"\b(?:t\d+|load_\d+)\b", value)) <= known
        calls = set(re.findall(r"\b([a-z_]+\w*)\(", value))
        assert calls <= {"fma", "sqrt", "rint", "floor", "trunc", "fabs", "copysign", "as_float",
                         "as_int", "as_double", "as_long"}, line  # fmt: skip
        known.add(target)


INT = dtypes.int32


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        (K.quotient(load(0, INT), load(1, INT)),
         "load_1 == 0 ? 0 : (load_1 == -1 ? (int)(0u - (uint)load_0) : load_0 / load_1)"),
        (K.modulo(load(0, INT), load(1, INT)),
         "(load_1 == 0 || load_1 == -1) ? 0 : load_0 % load_1"),
        (K.shift_left(load(0, INT), 3), "(int)((uint)load_0 << 3)"),
        (K.shift_right(load(0, INT), load(1, INT)),
         "(load_1 >= 0 && load_1 < 32) ? (int)(load_0 >> load_1) : (load_0 < 0 ? -1 : 0)"),
        (K.max(load(0), load(1)),
         ("(isnan(load_0) || load_0 > load_1 || (load_0 == load_1 && !signbit(load_0)))"
         " ? load_0 : load_1")),
        (K.convert(load(0), INT),
         ("(int)(trunc(load_0) >= -0x1p+31f && trunc(load_0) < 0x1p+31f ? (int)load_0 : "
          "(-2147483647 - 1))")),
        (K.convert(load(0), dtypes.uint8),
         "(uchar)(fabs(load_0) < 0x1p+63f ? (long)load_0 : (-9223372036854775807L - 1))"),
        (K.convert(load(0, dtypes.bfloat16), dtypes.float32),
         "(float)as_float((uint)load_0 << 16)"),
        (K.convert(load(0), dtypes.bfloat16), "bfloat16_of(load_0)"),
        (K.convert(load(0), dtypes.bool_), "load_0 != 0"),
        (K.bitcast(load(0), INT), "as_int(load_0)"),
        (K.not_(load(0, dtypes.bool_)), "!load_0"),
        (K.not_(load(0, INT)), "~load_0"),
        (K.abs(load(0, INT)), "load_0 < 0 ? (int)(0u - (uint)load_0) : load_0"),
        (K.select(load(0, dtypes.bool_), load(1), load(2)), "load_0 ? load_1 : load_2"),
    ],
)  # fmt: skip
def test_words_with_corners(expression, written):
    assert text(expression).splitlines()[0].split(" = ", 1)[1] == written + ";"


@pytest.mark.parametrize(
    ("value", "of", "written"),
    [
        (0.1, dtypes.float64, "0x1.999999999999ap-4"),
        (-1.0, dtypes.float32, "(-0x1.0000000000000p+0f)"),
        (float("inf"), dtypes.float32, "INFINITY"),
        (float("-inf"), dtypes.float64, "(-INFINITY)"),
        (float("nan"), dtypes.float32, "NAN"),
        (-(2**31), dtypes.int32, "(-2147483647 - 1)"),
        (7, dtypes.int64, "7L"),
        (-7, dtypes.int64, "(-7L)"),
        (True, dtypes.bool_, "true"),
    ],
)
def test_literals(value, of, written):
    assert literal(value, of) == written
