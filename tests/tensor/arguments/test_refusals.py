"""Refused calls: torch's words, and what lies beneath where it says more."""

from __future__ import annotations

import pytest

import flambeau as torch


class Broken:
    """A number whose own code fails."""

    def __index__(self) -> int:
        raise ValueError("no number yet")


def test_a_fault_in_an_arguments_own_code_is_the_cause() -> None:
    with pytest.raises(TypeError, match="must be tuple of ints, not Broken") as caught:
        torch.randn(Broken())
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_checks_say_is_not_said_twice() -> None:
    with pytest.raises(TypeError, match="must be int, not str") as caught:
        torch.randint("a", (2,))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (lambda: torch.fmod(foo=1, bar=2.0), "(bar=float, foo=int, )"),
        (lambda: torch.fmod(torch.ones(2), "a"), "(Tensor, str)"),
        (lambda: torch.floor_divide("a", 2), "(str, int)"),
    ],
)
def test_overloads_say_what_all_arguments_were(call: object, given: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()  # type: ignore[operator]
    assert f"received an invalid combination of arguments - got {given}, but" in str(caught.value)
