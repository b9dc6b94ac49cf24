"""Formats of eight bits: numbers to codes and back, in Python and in kernels."""

import itertools
import math
import struct

import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.codegen.float8 import FORMATS, code_of, values


@pytest.mark.parametrize("of", dtypes.EIGHT_BITS)
def test_codes_stand_for_their_numbers(of):
    for code, value in enumerate(values(of)):
        if math.isnan(value):
            assert math.isnan(values(of)[code_of(value, of)])
        else:
            assert code_of(value, of) == code


@pytest.mark.parametrize("of", dtypes.EIGHT_BITS)
def test_halves_go_to_even_codes(of):
    known = sorted({v for v in values(of) if math.isfinite(v) and v >= 0})
    for low, high in itertools.pairwise(known):
        middle = (low + high) / 2
        assert code_of(middle, of) % 2 == 0
        assert values(of)[code_of(math.nextafter(middle, 0.0) * (1 - 2**-20), of)] == low
        assert values(of)[code_of(middle * (1 + 2**-20), of)] == high


@pytest.mark.parametrize("of", dtypes.EIGHT_BITS)
def test_kernels_give_the_same_codes(of):
    """Every exponent of float32, mantissas beside halves, both signs."""
    mantissas = [0, 1, 0x7FFFF, 0x80000, 0x80001, 0xFFFFF, 0x100000, 0x100001, 0x17FFFF, 0x180000,
                 0x2FFFFF, 0x300000, 0x700000, 0x780000, 0x7FFFFF]  # fmt: skip
    bits = [sign << 31 | exponent << 23 | m
            for exponent in range(256) for m in mantissas for sign in (0, 1)]  # fmt: skip
    numbers = list(struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits)))
    made = torch.tensor(numbers).to(of)
    codes = made.view(torch.uint8).tolist()
    assert codes == [code_of(each, of) for each in numbers]
    back = made.float().tolist()
    expected = [values(of)[code] for code in codes]
    assert [struct.pack("<f", each) for each in back if each == each] == [
        struct.pack("<f", each) for each in expected if each == each
    ]


def test_what_is_beyond_the_largest():
    beyond = {of: values(of)[code_of(1e9, of)] for of in FORMATS}
    assert beyond[dtypes.float8_e4m3fn] == 448.0
    assert beyond[dtypes.float8_e5m2] == math.inf
    assert math.isnan(beyond[dtypes.float8_e4m3fnuz])
    assert math.isnan(beyond[dtypes.float8_e5m2fnuz])
