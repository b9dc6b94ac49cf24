"""Sparse matrices: products, gradients, duplicates, text, and what is refused."""

import copy

import pytest

import flambeau as torch

INDICES = [[0, 1, 1, 0], [2, 0, 0, 2]]
VALUES = [1.0, 2.0, 3.0, 4.0]
DENSE = [[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]


def matrix(**named):
    return torch.sparse_coo_tensor(INDICES, VALUES, (2, 3), **named)


def test_duplicates_add_up():
    found = matrix().coalesce()
    assert found.indices().tolist() == [[0, 1], [2, 0]]
    assert found.values().tolist() == [5.0, 5.0]
    assert matrix().to_dense().tolist() == DENSE


@pytest.mark.parametrize("product", [torch.spmm, torch.sparse.mm, lambda a, b: a @ b])
def test_products_as_dense_ones(product):
    other = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(product(matrix(), other), torch.tensor(DENSE) @ other)


def test_gradients_of_both_factors():
    values = torch.tensor(VALUES, requires_grad=True)
    other = torch.arange(6.0).reshape(3, 2).requires_grad_()
    torch.spmm(torch.sparse_coo_tensor(INDICES, values, (2, 3)), other).sum().backward()
    assert values.grad.tolist() == [9.0, 1.0, 1.0, 9.0]
    assert other.grad.tolist() == [[5.0, 5.0], [0.0, 0.0], [5.0, 5.0]]


def test_old_constructor_and_back():
    made = torch.sparse.FloatTensor(
        torch.LongTensor(INDICES), torch.FloatTensor(VALUES), torch.Size([2, 3])
    )
    assert made.is_sparse
    assert made.shape == torch.Size([2, 3])
    assert torch.equal(torch.tensor(DENSE).to_sparse().to_dense(), made.to_dense())
    assert made.t().to_dense().tolist() == torch.tensor(DENSE).t().tolist()


def test_text():
    assert repr(matrix()) == (
        "tensor(indices=tensor([[0, 1, 1, 0],\n"
        "                       [2, 0, 0, 2]]),\n"
        "       values=tensor([1., 2., 3., 4.]),\n"
        "       size=(2, 3), nnz=4, layout=torch.sparse_coo)"
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: matrix().indices(), "Cannot get indices on an uncoalesced tensor"),
        (lambda: torch.sparse_coo_tensor(INDICES, VALUES, (2, 2)), "size is inconsistent with ind"),
        (lambda: torch.spmm(matrix(), torch.ones(2, 2)), "Expected dim 0 size 3, got 2"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(RuntimeError, match=says):
        call()


def test_indices_below_zero_or_past_the_size_are_refused_by_their_dim():
    with pytest.raises(RuntimeError, match="found negative index -2 for dim 1"):
        torch.sparse_coo_tensor([[0], [-2]], [1.0])
    with pytest.raises(RuntimeError, match="for dim 1, size is 2 but found index 3"):
        torch.sparse_coo_tensor([[0], [3]], [1.0], (2, 2))
    assert torch.sparse_coo_tensor(torch.zeros(2, 0), []).shape == (0, 0)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
        matrix(device="cuda")


def test_a_module_keeps_a_matrix_as_a_buffer():
    module = torch.nn.Linear(2, 2)
    module.register_buffer("adjacency", torch.eye(2).to_sparse())
    module.adjacency = torch.ones(2, 2).to_sparse()
    assert module.double().adjacency.dtype is torch.float64
    assert module.state_dict()["adjacency"].to_dense().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_dims_of_values_come_after_those_of_coordinates():
    mixed = torch.sparse_coo_tensor([[0, 2, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    assert (mixed.sparse_dim(), mixed.dense_dim(), mixed.stride()) == (1, 1, (0, 0))
    assert mixed.to_dense().tolist() == [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]
    assert mixed.coalesce().values().tolist() == [[6.0, 8.0], [3.0, 4.0]]
    assert mixed[0].tolist() == [6.0, 8.0]
    assert mixed.index_select(0, torch.tensor([2, 0])).to_dense().tolist() == [[3, 4], [6, 8]]
    assert mixed.unsqueeze(0).shape == (1, 3, 2)
    with pytest.raises(RuntimeError, match="transpositions between sparse and dense dimensions"):
        mixed.permute(1, 0)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda s: s.size(5), IndexError, r"expected to be in range of \[-2, 1\], but got 5"),
        (lambda s: s.unsqueeze(7), IndexError, r"expected to be in range of \[-3, 2\], but got 7"),
        (lambda s: s.select(5, 0), IndexError, "but got 5"),
        (lambda s: s.transpose(0, 4), IndexError, "but got 4"),
        (lambda s: s.permute(0, 3), IndexError, "but got 3"),
        (lambda s: s.permute(0), RuntimeError, "number of dimensions in the tensor input does not"),
        (lambda s: s.permute(0, 0), RuntimeError, r"permute\(\): duplicate dims are not allowed"),
        (lambda s: s.index_select(5, torch.tensor([0])), IndexError, "but got 5"),
        (lambda s: s.index_select(0, torch.tensor([7])), IndexError, "index contains 7 that is"),
        (lambda s: s[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
        (lambda s: torch.sparse.sum(s, (0, 0)), RuntimeError, "dim 0 appears multiple times"),
    ],
)
def test_dims_and_places_that_are_not_there_are_refused(call, error, says):
    with pytest.raises(error, match=says):
        call(matrix())
    assert matrix().transpose(-1, 0).shape == (3, 2)


@pytest.mark.parametrize(
    "write", [lambda s: s.mul_(2), lambda s: s.add_(s), lambda s: s.zero_(), lambda s: s.copy_(s)]
)
def test_leaves_are_not_written_in_grad_mode(write):
    leaf = matrix(requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        write(leaf)
    with torch.no_grad():
        write(leaf)


def test_a_leaf_has_a_gradient_where_it_has_elements():
    leaf = matrix(requires_grad=True)
    torch.sparse.mm(leaf, torch.ones(3, 1)).sum().backward()
    assert leaf.is_leaf
    assert leaf.grad.is_sparse
    assert leaf.grad._values().tolist() == [1.0] * 4
    leaf.grad = None
    assert leaf.grad is None


def test_zero_forgets_what_is_stored_and_copies_are_their_own():
    copied = copy.deepcopy(matrix())
    emptied = matrix().zero_()
    assert emptied._nnz() == 0
    assert emptied.shape == (2, 3)
    assert torch.equal(copied.to_dense(), torch.tensor(DENSE))
    assert repr(emptied) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=torch.sparse_coo)"
    )


@pytest.mark.parametrize("name", ["exp", "reshape", "mean"])
def test_what_sparse_tensors_have_not_is_refused(name):
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}'"):
        getattr(matrix(), name)()
    assert not hasattr(matrix(), "no_such_member")
