"""Matrices by compressed rows."""

import pytest

import flambeau as torch


def matrix(**named):
    return torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), **named)


def test_text():
    assert repr(matrix()) == (
        "tensor(crow_indices=tensor([0, 1, 3]),\n"
        "       col_indices=tensor([2, 0, 2]),\n"
        "       values=tensor([3., 4., 5.]), size=(2, 3), nnz=3,\n"
        "       layout=torch.sparse_csr)"
    )


def test_what_it_holds_and_becomes():
    dense = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]
    made = torch.tensor(dense).to_sparse_csr()
    assert made.crow_indices().tolist() == [0, 1, 3]
    assert made.col_indices().tolist() == [2, 0, 2]
    assert made.to_dense().tolist() == matrix().to_dense().tolist() == dense
    assert (made * 2).values().tolist() == [6.0, 8.0, 10.0]
    assert made.sum().item() == 12.0
    assert (made.is_sparse, made.is_sparse_csr, made.layout) == (False, True, torch.sparse_csr)


def test_products():
    vector = torch.arange(3.0)
    wanted = matrix().to_dense() @ vector
    assert torch.equal(matrix() @ vector, wanted)
    assert torch.equal(torch.mv(matrix(), vector), wanted)
    assert torch.equal(torch.mm(matrix(), vector.unsqueeze(1)).squeeze(1), wanted)
    leaf = matrix(requires_grad=True)
    (leaf @ vector).sum().backward()
    assert leaf.values().grad.tolist() == [2.0, 0.0, 2.0]


def test_refusals():
    with pytest.raises(RuntimeError, match=r"number of columns .1. and of values .2. must match"):
        torch.sparse_csr_tensor([0, 1], [0], [1.0, 2.0])
    with pytest.raises(NotImplementedError, match="'SparseCsrCPU' backend"):
        torch.exp(matrix())
