"""Products and folds of sparse tensors, against those of dense ones."""

import pytest

import flambeau as torch

LEFT = [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]
RIGHT = [[0.0, 1.0], [2.0, 0.0], [0.0, 4.0]]


def leaves():
    return torch.tensor(LEFT, requires_grad=True), torch.tensor(RIGHT, requires_grad=True)


@pytest.mark.parametrize(
    "pick",
    [
        lambda a, b: (a.to_sparse(), b),
        lambda a, b: (a, b.to_sparse()),
        lambda a, b: (a.to_sparse(), b.to_sparse()),
        lambda a, b: (a.to_sparse_csr(), b),
    ],
)
def test_products_and_their_gradients(pick):
    left, right = leaves()
    product = torch.sparse.mm(*pick(left, right))
    product = product.to_dense() if getattr(product, "is_sparse", False) else product
    product.pow(2).sum().backward()
    other_left, other_right = leaves()
    wanted = other_left @ other_right
    wanted.pow(2).sum().backward()
    assert torch.equal(product, wanted)
    # A sparse factor has gradients where it has elements.
    for given, full in ((left, other_left), (right, other_right)):
        stored = full.detach() != 0
        assert torch.equal(given.grad * stored, full.grad * stored)


def test_addmm():
    made = torch.sparse.addmm(
        torch.ones(2, 2), torch.tensor(LEFT).to_sparse(), torch.tensor(RIGHT), beta=2, alpha=3
    )
    assert made.tolist() == [[8.0, 2.0], [2.0, 44.0]]


def test_sums_over_dims():
    matrix = torch.tensor(LEFT).to_sparse()
    assert torch.sparse.sum(matrix).item() == 6.0
    assert torch.sparse.sum(matrix, 0).to_dense().tolist() == [2.0, 1.0, 3.0]
    assert torch.sparse.sum(matrix, -1).is_coalesced()
    assert torch.sparse.sum(matrix, [0, 1]).item() == 6.0
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.sparse.sum(matrix, 2)


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_counts_what_is_not_stored_as_minus_infinity(dim):
    dense = torch.tensor(LEFT)
    masked = dense.masked_fill(dense == 0, float("-inf"))
    wanted = torch.softmax(masked, dim) * (dense != 0)
    given = torch.sparse.softmax(dense.to_sparse(), dim)
    assert torch.allclose(given.to_dense(), wanted.nan_to_num())
    logs = torch.sparse.log_softmax(dense.to_sparse(), dim)
    assert torch.allclose(logs.values().exp(), given.values())


def test_joined():
    matrix = torch.tensor(LEFT).to_sparse()
    for dim in (0, 1):
        wanted = torch.cat([torch.tensor(LEFT)] * 2, dim)
        assert torch.equal(torch.cat([matrix, matrix], dim).to_dense(), wanted)
    assert torch.equal(torch.stack([matrix, matrix])[1].to_dense(), torch.tensor(LEFT))
