"""Activations under torch.nn.functional's names: what a dim may be."""

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    ("name", "told"), [("softmax",) * 2, ("log_softmax",) * 2, ("softmin", "softmax")]
)
def test_a_dim_is_an_int(name, told):
    function, x = getattr(F, name), torch.zeros(2, 2)
    assert function(x, torch.tensor(1)).tolist() == function(x, 1).tolist()
    for dim in (1.0, "a", (0, 1)):
        kind = type(dim).__name__
        message = rf"{told}\(\): argument 'dim' \(position 1\) must be int, not {kind}"
        with pytest.raises(TypeError, match=message):
            function(x, dim)


def test_halves_of_a_number():
    with pytest.raises(RuntimeError, match="glu does not support scalars because halving size"):
        F.glu(torch.tensor(1.0))
