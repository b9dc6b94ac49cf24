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


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: torch.softmax(x, 1.0), r"'dim' \(position 2\) must be int, not float"),
        (lambda x: x.softmax(1.0), r"'dim' \(position 1\) must be int, not float"),
        (lambda x: x.softmax(dim=1.0), "'dim' must be int, not float"),
        (lambda x: torch.select(x, 0, True), r"'index' \(position 3\) must be int, not bool"),
        (lambda x: x.select(0, True), r"'index' \(position 2\) must be int, not bool"),
        (lambda x: x.gather(0, 1), r"'index' \(position 2\) must be Tensor, not int"),
        (lambda x: x.masked_select(1), r"'mask' \(position 1\) must be Tensor, not int"),
        (lambda x: torch.masked_select(x, 1), r"'mask' \(position 2\) must be Tensor, not int"),
    ],
)
def test_methods_count_their_arguments_without_the_tensor(call, says) -> None:
    with pytest.raises(TypeError, match=says):
        call(torch.ones(2, 2))


@pytest.mark.parametrize(
    "call", [lambda x: x.std(correction="a"), lambda x: x.logit("a"), lambda x: x.roll("a")]
)
def test_what_is_no_number_is_refused_before_it_is_recorded(call) -> None:
    with pytest.raises(TypeError, match="str"):
        call(torch.ones(2, 2))
    assert torch.zeros(1).add(1).item() == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.kron(x, 3), r"kron\(\): argument 'other' \(position 2\) must be Tensor"),
        (lambda x: torch.inner(x, 3), r"inner\(\): argument 'other' \(position 2\) must be Tensor"),
        (lambda x: torch.cross(x, 3), r"cross\(\): argument 'other' \(position 2\) must be Tensor"),
        (lambda x: x.type_as(3), r"type_as\(\): argument 'other' \(position 1\) must be Tensor"),
        (lambda x: x.view_as(3), r"view_as\(\): argument 'other' \(position 1\) must be Tensor"),
        (lambda x: x.expand_as([1]), r"expand_as\(\): argument 'other' \(position 1\) must be"),
        (
            lambda x: x.put(0, 1),
            r"put\(\): argument 'index' \(position 1\) must be Tensor, not int",
        ),
    ],
)
def test_what_is_no_tensor_is_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(torch.ones(3))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (lambda x: x.sum(dim=(1,)), lambda x: x.sum(dim=(1.0,))),
        (lambda x: x.mean((0, 1)), lambda x: x.mean((0.0, 1))),
        (lambda x: x.reshape((1, 6)), lambda x: x.reshape((1.0, 6))),
        (lambda x: x.view(1, 6), lambda x: x.view(True, 6)),
        (lambda x: x.permute(1, 0), lambda x: x.permute(1.0, 0)),
    ],
)
def test_a_call_seen_before_lets_no_equal_number_of_another_type_in(right, wrong):
    x = torch.ones(2, 3)
    for _ in range(3):
        right(x)
        with pytest.raises(TypeError):
            wrong(x)
