"""Functions composed of others: what their arguments promise is checked."""

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
