"""Distinct slices, and elements repeated: what the arguments promise is checked."""

import pytest

import flambeau as torch


@pytest.mark.parametrize("repeats", [2, torch.tensor([1, 2, 3])])
def test_the_size_of_what_is_repeated_is_checked(repeats):
    x = torch.arange(3)
    wanted = torch.repeat_interleave(x, repeats)
    assert torch.repeat_interleave(x, repeats, output_size=6).tolist() == wanted.tolist()
    with pytest.raises(RuntimeError, match=r"Invalid output_size, expected 6|allocated size does"):
        torch.repeat_interleave(x, repeats, output_size=5)
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        torch.repeat_interleave(x, output_size=4)


def test_places_repeated_as_often_as_a_vector_says():
    counts = torch.tensor([2, 0, 1], dtype=torch.int32)
    found = torch.repeat_interleave(counts)
    assert (found.tolist(), found.dtype) == ([0, 0, 2], torch.int32)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: torch.repeat_interleave(x), NotImplementedError, "not implemented for 'Float'"),
        (lambda x: torch.repeat_interleave(torch.ones(2, 2).long()), RuntimeError, "accept 1D"),
        (lambda x: x.repeat_interleave(torch.tensor([-1, 2]), 0), RuntimeError, "be negative"),
        (lambda x: x.repeat_interleave(torch.tensor([1, 2]), 1), RuntimeError,
         r"repeats.size\(0\) = 2 and input.size\(1\) = 3"),
        (lambda x: x.repeat_interleave(2.5), TypeError, r"arguments - got \(float\)"),
    ],
)  # fmt: skip
def test_repeats_that_torch_refuses(call, kind, text):
    with pytest.raises(kind, match=text):
        call(torch.ones(2, 3))


def test_distinct_slices():
    given = torch.tensor([[1, 0, 1], [2, 3, 2]])
    found, inverse, counts = torch.unique(given, dim=1, return_inverse=True, return_counts=True)
    assert (found.tolist(), found.stride()) == ([[0, 1], [3, 2]], (1, 2))
    assert (inverse.tolist(), counts.tolist()) == ([1, 0, 1], [1, 2])
    assert torch.unique(torch.zeros(0), dim=0).shape == (0,)
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        torch.tensor(1).unique(dim=0)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions, and they aren"):
        torch.zeros(2, 0).unique(dim=0)
