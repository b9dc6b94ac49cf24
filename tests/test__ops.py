"""torch.ops: torch's own operators by their inner names."""

import pytest

import flambeau as torch


def test_overloads_are_the_public_functions():
    x = torch.arange(6.0).reshape(2, 3)
    aten = torch.ops.aten
    assert aten.add.Tensor(x, 1).equal(x + 1)
    assert aten.slice.Tensor(x, 1, 0, 2).equal(x[:, :2])
    assert aten.index.Tensor(x, [None, torch.tensor([2, 0])]).equal(x[:, [2, 0]])
    assert aten._softmax.default(x, -1, False).equal(torch.softmax(x, -1))
    assert aten._to_copy.default(x, dtype=torch.float64).dtype is torch.float64
    assert aten.linalg_vector_norm(x).equal(torch.linalg.vector_norm(x))
    assert (str(aten.relu), str(aten.relu.default), aten.add.Tensor.name()) == (
        "aten.relu", "aten.relu.default", "aten::add.Tensor",
    )  # fmt: skip
    assert aten.add.Tensor is aten.add.Tensor


def test_what_there_is_not_raises():
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute"):
        torch.ops.aten.nothing_like_this  # noqa: B018
    with pytest.raises(OSError, match=r"Could not load this library: /tmp/operators\.so"):
        torch.ops.load_library("/tmp/operators.so")
    with pytest.raises(NotImplementedError, match="aten::_inner: flambeau has no such operator"):
        torch.ops.aten._inner.default()
