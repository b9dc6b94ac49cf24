"""The lattice of dtypes, against torch's own table."""

import pytest
from rules_support import RULES

from flambeau.base import dtypes, promotion
from flambeau.base.layout import contiguous

KINDS = {"bool": bool, "int": int, "float": float, "complex": complex}


def test_every_pair_promotes_as_in_torch():
    """Two dtypes; a tensor without dims beside one with; casts that are allowed."""
    for key, row in RULES["promotion"].items():
        if " number " in key:
            continue
        left, right = map(dtypes.by_name, key.split())
        scalar, vector = contiguous((), left), contiguous((2,), right)
        assert promotion.promote_types(left, right).name == row[0], key
        assert promotion.result_type((scalar, vector)).name == row[1], key
        assert promotion.can_cast(left, right) is row[2], key


def test_numbers_promote_as_in_torch():
    """A number matters only where its kind is higher than the tensor's."""
    for key, expected in RULES["promotion"].items():
        if " number " not in key:
            continue
        name, kind = key.split(" number ")
        number = promotion.SCALARS[KINDS[kind]]
        vector = contiguous((2,), dtypes.by_name(name))
        assert promotion.result_type((vector, number)).name == expected, key


def test_rules_of_operators():
    """What each rule computes in and returns."""
    integers = contiguous((2,), dtypes.int32)
    number = promotion.REAL
    rules = {
        promotion.DEFAULT: ("int32", "int32"),
        promotion.INT_TO_FLOAT: ("float32", "float32"),
        promotion.BOOL_RESULT: ("int32", "bool"),
        promotion.SAME: ("int32", "int32"),
    }
    for rule, expected in rules.items():
        found = promotion.promote(rule, (integers,))
        assert tuple(each.name for each in found) == expected, rule
    found = promotion.promote(promotion.SAME, (integers, number))
    assert found == (dtypes.int32, dtypes.int32)


def test_default_dtype_decides_for_numbers():
    """A Python float beside integers is of the default dtype."""
    integers = contiguous((2,), dtypes.int64)
    promotion.set_default_dtype(dtypes.float64)
    try:
        assert promotion.result_type((integers, promotion.REAL)) is dtypes.float64
        assert promotion.promote(promotion.INT_TO_FLOAT, (integers,))[0] is dtypes.float64
    finally:
        promotion.set_default_dtype(dtypes.float32)


def test_default_dtype_must_be_floating():
    """torch's TypeError, and the default stays."""
    with pytest.raises(TypeError, match="only floating-point types are supported"):
        promotion.set_default_dtype(dtypes.int64)
    assert promotion.default_dtype() is dtypes.float32


def test_a_result_may_not_be_cast_down():
    assert not promotion.can_cast(dtypes.float32, dtypes.int64)
    assert promotion.can_cast(dtypes.int64, dtypes.float16)
    assert promotion.can_cast(dtypes.float64, dtypes.float16)
