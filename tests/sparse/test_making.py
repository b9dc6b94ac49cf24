"""Sparse tensors made of coordinates, of dense tensors, and by the old constructors."""

import pytest

import flambeau as torch


def test_of_a_size_alone_nothing_is_stored():
    assert torch.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
    assert torch.sparse.FloatTensor(2, 3)._nnz() == 0
    assert torch.sparse.FloatTensor().shape == (0,)


@pytest.mark.parametrize("sparse_dim", [1, 2, 3])
def test_a_dense_tensor_and_back(sparse_dim):
    dense = torch.tensor([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]], requires_grad=True)
    made = dense.to_sparse(sparse_dim)
    assert (made.sparse_dim(), made._nnz()) == (sparse_dim, 1)
    assert torch.equal(made.to_dense(), dense)
    (made.to_dense() ** 2).sum().backward()
    assert torch.equal(dense.grad, 2 * dense)


def test_the_elements_another_one_stores():
    mask = torch.eye(2).to_sparse()
    assert torch.arange(4.0).reshape(2, 2).sparse_mask(mask).values().tolist() == [0.0, 3.0]
    with pytest.raises(RuntimeError, match="operands have incompatible sizes"):
        torch.ones(3).sparse_mask(mask)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: torch.sparse_coo_tensor([0], [1.0]), "indices must be sparse_dim x nnz"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0]), "must have same nnz"),
        (lambda: torch.sparse_coo_tensor([[0]], [1.0], (2, 2)), "'len.size. == sparse_dim"),
        (lambda: torch.ones(2).to_sparse(2), "sparse_dim must be in the range"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(RuntimeError, match=says):
        call()
