"""torch's random tensors: which forms of a call are taken."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.randint(5),
        lambda: torch.randint(),
        lambda: torch.randint(0, 5, 2),
        lambda: torch.randint(high=5),
    ],
)
def test_randint_wants_a_size(call):
    with pytest.raises(TypeError, match=r"^randint\(\) received an invalid combination of argum"):
        call()


def test_forms_of_randint_draw_the_same():
    drawn = []
    for call in (
        lambda: torch.randint(9, (3,)),
        lambda: torch.randint(0, 9, [3]),
        lambda: torch.randint(low=0, high=9, size=torch.Size((3,))),
        lambda: torch.randint(0, high=9, size=(3,)),
    ):
        torch.manual_seed(0)
        drawn.append(call().tolist())
    assert all(each == drawn[0] for each in drawn)
    assert torch.randint(9, ()).shape == ()
