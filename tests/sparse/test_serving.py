"""Operators and torch's functions that are given sparse tensors."""

import pytest

import flambeau as torch

DENSE = [[0.0, 4.0], [9.0, 0.0]]


def sparse():
    return torch.tensor(DENSE).to_sparse()


def rows():
    return torch.sparse_coo_tensor([[0, 1]], DENSE, (2, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s * 2, lambda s: 2 * s, lambda s: s / 2, lambda s: -s, lambda s: s + s,
        lambda s: s - s, lambda s: s * s, lambda s: s**2, torch.sqrt, torch.relu, torch.neg,
        lambda s: s.sin(), lambda s: torch.mul(s, 3), lambda s: s.add(s, alpha=2), torch.abs,
        lambda s: s.clone().mul_(2), lambda s: s.clone().add_(s),
        lambda s: torch.ones(2, 2) + s, lambda s: torch.ones(2, 2) - s,
        lambda s: torch.ones(2, 2).add_(s, alpha=3), lambda s: torch.ones(2, 2).sub_(s),
        lambda s: torch.full((2, 2), 3.0) * s, lambda s: torch.mm(torch.ones(2, 2), s),
        lambda s: torch.addmm(torch.ones(2, 2), s, torch.ones(2, 2)),
        lambda s: torch.mv(s, torch.ones(2)), torch.sum, torch.norm,
    ],
)  # fmt: skip
def test_as_dense_ones(call):
    given, wanted = call(sparse()), call(torch.tensor(DENSE))
    given = given.to_dense() if getattr(given, "is_sparse", False) else given
    assert torch.equal(given, wanted)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda s: s + torch.ones(2, 2), RuntimeError, r"add\(sparse, dense\) is not supported"),
        (lambda s: s + 1, RuntimeError, r"add\(sparse, dense\) is not supported"),
        (lambda s: s / s, RuntimeError, "Sparse division requires a scalar"),
        (lambda s: s == s, NotImplementedError, "Could not run 'aten::eq'"),
        (torch.exp, NotImplementedError, "Could not run 'aten::exp'"),
        (lambda s: s + torch.ones(3, 3).to_sparse(), RuntimeError, "expected sizes of 'self'"),
        (lambda s: torch.ones(2) + s, RuntimeError, "does not currently support broadcasting"),
        (lambda s: torch.ones(2, 2).long().add_(s), RuntimeError, "Long in add operation"),
        (lambda s: s.long().add_(s), RuntimeError, "Long in add operation"),
        (lambda s: torch.ones(2, 2).long().sub_(rows()), RuntimeError, "Long in add operation"),
        (lambda s: s.long().mul_(s), RuntimeError, "Can't convert result type Float to output L"),
        (lambda s: s.long().div_(2), RuntimeError, "result type Float can't be cast to the des"),
        (lambda s: s.copy_(torch.ones(2, 2)), RuntimeError, "between dense and sparse Tensors is"),
        (lambda s: torch.ones(2, 2).copy_(s), RuntimeError, "between dense and sparse Tensors is"),
        (lambda s: s.copy_(rows()), RuntimeError, r"sparse dimensions \(from 2 to 1\) on a non-em"),
    ],
)
def test_refusals(call, error, says):
    with pytest.raises(error, match=says):
        call(sparse())


def test_writes_keep_the_dtype_and_copies_take_the_size():
    assert sparse().mul_(sparse().double()).dtype is torch.float32
    copied = sparse().long().copy_(torch.ones(3, 1).to_sparse())
    assert copied.dtype is torch.int64
    assert copied.to_dense().tolist() == [[1], [1], [1]]


def test_dtypes():
    assert sparse().itemsize == 4
    assert sparse().double().dtype is torch.float64
    assert sparse().bool().to_dense().tolist() == [[False, True], [True, False]]
    assert sparse().type() == "torch.sparse.FloatTensor"
    assert torch.is_tensor(sparse())
