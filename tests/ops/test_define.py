"""Registering operators, kinds of parameters, torch's words for dtypes that a kernel has not."""

import pytest

from flambeau.base import dtypes
from flambeau.base.layout import contiguous
from flambeau.ops import REGISTRY
from flambeau.ops.define import (
    Elementwise,
    check_floating,
    not_implemented,
    operator,
    parameter_kinds,
)


def test_a_name_is_given_once():
    """Two operators of one name would hide each other."""
    with pytest.raises(ValueError, match="'add' is defined twice"):
        operator("add")(type("Again", (Elementwise,), {}))
    assert type(REGISTRY["add"]).__name__ == "Add"


def test_kinds_are_read_off_the_formula():
    """Annotations as written; what has none is a tensor."""

    def formula(self, k, input, other: "Operand", *, alpha: "Number" = 1):  # noqa: F821
        return input

    kinds = {"input": "Tensor", "other": "Operand", "alpha": "Number"}
    assert parameter_kinds(formula, 2) == kinds
    assert REGISTRY["rsub"].kinds() == kinds


def test_numbers_do_not_promote_unless_they_are_operands():
    """alpha takes the tensors' dtype; other makes integers floating."""
    integers = contiguous((3,), dtypes.int64)
    from flambeau.base.promotion import INTEGER, REAL

    add = REGISTRY["add"]
    assert add.infer(integers, integers, alpha=INTEGER).outputs[0].dtype is dtypes.int64
    assert add.infer(integers, REAL).outputs[0].dtype is dtypes.float32


def test_kernels_that_torch_has_for_floats_only():
    """NotImplementedError with torch's sentence, then the way out."""
    integers = contiguous((3,), dtypes.int64)
    error = not_implemented("some_cpu", dtypes.bool_)
    assert str(error).startswith("\"some_cpu\" not implemented for 'Bool'\n")
    with pytest.raises(NotImplementedError, match="\"some_cpu\" not implemented for 'Long'"):
        check_floating("some_cpu", integers)
    with pytest.raises(NotImplementedError, match="\"GeluKernelImpl\" not implemented for 'Long'"):
        REGISTRY["gelu"].infer(integers)
