"""Objects with a __torch_function__ take calls over."""

import pytest

import flambeau as torch

KNOWN = {}


class Diagonal:
    """A matrix of which only the diagonal is kept."""

    def __init__(self, values):
        self.values = values

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function not in KNOWN or not all(issubclass(t, (Diagonal, torch.Tensor)) for t in types):
            return NotImplemented
        return KNOWN[function](*args, **(kwargs or {}))


def known(*functions):
    def keep(answer):
        KNOWN.update(dict.fromkeys(functions, answer))
        return answer

    return keep


@known(torch.matmul)
def product(one, other):
    return one.values[:, None] * other if isinstance(one, Diagonal) else one * other.values


@known(torch.add, torch.Tensor.add)
def total(one, other, alpha=1):
    return ("sum", type(one).__name__, type(other).__name__, alpha)


@known(torch.cat)
def joined(parts, dim=0):
    return len(parts)


@known(torch.clone)
def cloned(one):
    return Diagonal(one.values.clone())


@known(torch.linalg.eigvalsh, torch.inverse)
def values(one):
    return one.values


@pytest.fixture
def matrix():
    return Diagonal(torch.tensor([1.0, 2.0]))


def test_functions_hand_over(matrix):
    dense = torch.ones(2, 2)
    assert torch.matmul(matrix, dense).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert torch.matmul(dense, matrix).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert torch.add(dense, matrix, alpha=2) == ("sum", "Tensor", "Diagonal", 2)
    assert torch.cat([dense, matrix], dim=1) == 2
    assert torch.linalg.eigvalsh(matrix) is torch.inverse(matrix) is matrix.values
    assert torch.clone(matrix).values.tolist() == [1.0, 2.0]


def test_operators_and_methods_hand_over(matrix):
    dense = torch.ones(2, 2)
    assert dense + matrix == ("sum", "Tensor", "Diagonal", 1)
    assert dense.add(matrix) == ("sum", "Tensor", "Diagonal", 1)


def test_what_is_not_known_says_so(matrix):
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.exp'; all"):
        torch.exp(matrix)
    with pytest.raises(TypeError, match=r"no implementation found for 'torch\.functional\.split'"):
        torch.split(matrix, 1)
    with pytest.raises(TypeError, match="unsupported operand type"):
        torch.ones(2) * matrix


def test_errors_of_tensors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        torch.exp("text")
