"""What products refuse, in torch's words."""

import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.base.layout import contiguous
from flambeau.ops import REGISTRY


def floats(*shape):
    return contiguous(shape, dtypes.float32)


@pytest.mark.parametrize(
    ("name", "operands", "sentence"),
    [
        ("mm", [(2, 3), (4, 5)], "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        ("mm", [(3,), (4, 5)], "self must be a matrix"),
        ("matmul", [(2, 3), (4, 5)], "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        ("matmul", [(7, 2, 3), (4, 5)], "mat1 and mat2 shapes cannot be multiplied (14x3 and 4x5)"),
        ("matmul", [(2, 3), (4,)], "size mismatch, got input (2), mat (2x3), vec (4)"),
        ("matmul", [(), (4,)], "both arguments to matmul need to be at least 1D, but they are 0D"),
        ("matmul", [(6, 2, 3), (6, 4, 5)], "Expected size for first two dimensions of batch2"),
        ("matmul", [(5, 2, 3), (6, 3, 4)], "The size of tensor a (5) must match the size of"),
        ("bmm", [(2, 3), (2, 3, 4)], "batch1 must be a 3D tensor"),
        ("mv", [(2, 3), (4,)], "size mismatch, got input (2), mat (2x3), vec (4)"),
        ("dot", [(3,), (4,)], "inconsistent tensor size, expected tensor [3] and src [4]"),
        ("dot", [(3, 1), (3,)], "1D tensors expected, but got 2D and 1D tensors"),
        ("linear", [(2, 3), (2, 4)], "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)"),
    ],
)
def test_shapes_that_do_not_fit(name, operands, sentence):
    """A RuntimeError with torch's first sentence."""
    with pytest.raises(RuntimeError) as caught:
        REGISTRY[name].infer(*[floats(*shape) for shape in operands])
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "operands",
    [[(3, 2), (2,)], [(2,), (2,)], [(3, 2), (3, 2)]],
    ids=["matrix and vector", "vectors", "matrices"],
)
def test_linear_checks_dtypes_whatever_its_ranks(operands):
    """No product of bools, nor of two dtypes, is recorded."""
    bools = [contiguous(shape, dtypes.bool_) for shape in operands]
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        REGISTRY["linear"].infer(*bools)
    mixed = [floats(*operands[0]), contiguous(operands[1], dtypes.float64)]
    with pytest.raises(RuntimeError, match="same dtype"):
        REGISTRY["linear"].infer(*mixed)


def test_the_bias_of_a_linear_with_a_vector():
    """Added to products of more dims and of one, where it fits; a matrix's takes none, as torch."""
    layout = REGISTRY["linear"].infer(floats(1, 3, 2), floats(2), floats())
    assert layout.shape == (1, 3)
    with pytest.raises(RuntimeError, match="mat2 must be a matrix, got 1-D tensor"):
        REGISTRY["linear"].infer(floats(3, 2), floats(2), floats())
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        REGISTRY["linear"].infer(floats(2), floats(2), floats(5))
    with pytest.raises(RuntimeError, match="same dtype, but got Double and Float"):
        REGISTRY["linear"].infer(floats(2), floats(2), contiguous((), dtypes.float64))


def test_advice_where_a_transpose_would_do():
    """(2x3) @ (4x3) wants the second matrix turned."""
    with pytest.raises(RuntimeError, match="transpose the second matrix"):
        REGISTRY["mm"].infer(floats(2, 3), floats(4, 3))


def test_products_never_promote():
    """Two dtypes are an error that says how to convert."""
    doubles = contiguous((3, 4), dtypes.float64)
    with pytest.raises(RuntimeError) as caught:
        REGISTRY["mm"].infer(floats(2, 3), doubles)
    message = str(caught.value)
    assert message.startswith(
        "expected m1 and m2 to have the same dtype, but got: float != double\n"
    )
    assert ".to(torch.float32)" in message


@pytest.mark.parametrize("shape", [(2, 5), (5,), (3, 2, 5)])
def test_a_linear_with_a_bias_compares_dtypes_before_shapes(shape):
    """As torch's addmm does; without a bias its mm looks at shapes first."""
    weight, bias = contiguous((3, 4), dtypes.float64), contiguous((3,), dtypes.float64)
    with pytest.raises(RuntimeError, match="mat1 and mat2 must have the same dtype, but got Float"):
        REGISTRY["linear"].infer(floats(*shape), weight, bias)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        REGISTRY["linear"].infer(floats(*shape), weight)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_added_to_a_product_is_rounded_with_it(dtype):
    """Once, in the dtype of the operands; the product itself is summed in float32."""
    torch.manual_seed(0)
    left, right, added = (torch.randn(*s).to(dtype) for s in ((8, 16), (16, 8), (8, 8)))
    once = (left.double() @ right.double() + added.double()).float().to(dtype)
    for found in (
        torch.addmm(added, left, right), torch.addbmm(added, left[None], right[None]),
        torch.baddbmm(added[None], left[None], right[None])[0],
        torch.stack([torch.addmv(added[:, n], left, right[:, n]) for n in range(8)], 1),
    ):  # fmt: skip
        assert torch.equal(found, once)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(5, 16), (2, 3, 16), (16,)])
def test_linear_of_halves_is_rounded_once(dtype, shape):
    torch.manual_seed(0)
    x, w, b = (torch.randn(each).to(dtype) for each in (shape, (7, 16), (7,)))
    wide = torch.nn.functional.linear(x.float(), w.float(), b.float())
    made = torch.nn.functional.linear(x, w, b)
    assert made.dtype is dtype
    assert torch.equal(made, wide.to(dtype))
