"""Operators and torch's functions that are given sparse tensors."""

import pytest

import flambeau as torch

DENSE = [[0.0, 4.0], [9.0, 0.0]]


def sparse():
    return torch.tensor(DENSE).to_sparse()


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
    ],
)
def test_refusals(call, error, says):
    with pytest.raises(error, match=says):
        call(sparse())


def test_dtypes():
    assert sparse().double().dtype is torch.float64
    assert sparse().bool().to_dense().tolist() == [[False, True], [True, False]]
    assert sparse().type() == "torch.sparse.FloatTensor"
    assert torch.is_tensor(sparse())
