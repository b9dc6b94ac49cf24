"""What joins refuse, in torch's words."""

import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.base.layout import contiguous
from flambeau.ops import REGISTRY


def floats(*shape):
    return contiguous(shape, dtypes.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "sentence"),
    [
        ("cat", [()], ValueError, "torch.cat(): expected a non-empty list of Tensors"),
        ("cat", [(floats(), floats())], RuntimeError, "zero-dimensional tensor (at position 0)"),
        ("cat", [(floats(2, 3), floats(3))], RuntimeError,
         "Tensors must have same number of dimensions: got 2 and 1"),
        ("cat", [(floats(2, 3), floats(2, 4))], RuntimeError,
         "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for"),
        ("cat", [(floats(2, 3),), 2], IndexError,
         "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        ("stack", [()], RuntimeError, "stack expects a non-empty TensorList"),
        ("stack", [(floats(3), floats(4))], RuntimeError,
         "stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1"),
        ("repeat", [floats(2, 2), (2,)], RuntimeError,
         "Number of dimensions of repeat dims can not be smaller than number of dimensions"),
        ("roll", [floats(3, 4), (1,), (0, 1)], RuntimeError,
         "shifts and dimensions must align. shifts: 1, dims:2"),
    ],
)  # fmt: skip
def test_wrong_arguments(name, arguments, kind, sentence):
    """torch's class and first sentence."""
    with pytest.raises(kind) as caught:
        REGISTRY[name].infer(*arguments)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("dim", [0, 1, -2, 7])
def test_cat_of_empty_vectors_alone_takes_any_dim(dim):
    start = torch.empty(0, requires_grad=True)
    joined = torch.cat([start, torch.empty(0, dtype=torch.float64)], dim)
    assert joined.shape == (0,)
    assert joined.dtype is torch.float64
    joined.sum().backward()
    assert start.grad.shape == (0,)


def test_cat_promotes_and_skips_empty_vectors():
    """A tensor of shape (0,) joins anything."""
    doubles = contiguous((2, 3), dtypes.float64)
    (out,) = REGISTRY["cat"].infer((floats(0), floats(1, 3), doubles)).outputs
    assert (out.shape, out.dtype) == ((3, 3), dtypes.float64)
