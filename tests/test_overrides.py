"""torch.overrides: who may take a call over, asked and called as torch does it."""

import pytest

import flambeau as torch
from flambeau.overrides import (
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    wrap_torch_function,
)


class Base:
    answer = "base"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return cls.answer and (cls.answer, function.__name__, types, args, kwargs)


class Derived(Base):
    answer = "derived"


class Silent:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def test_who_has_one():
    x = torch.ones(2)
    assert not has_torch_function((x, 3, "text"))
    assert has_torch_function((x, Base()))
    assert is_tensor_like(x)
    assert is_tensor_like(Base())
    assert not is_tensor_like(3)


def test_subclasses_are_asked_first_and_silence_passes_on():
    silent, base, derived = Silent(), Base(), Derived()
    given = handle_torch_function(torch.ones, (silent, base, derived), 1, key=2)
    assert given == ("derived", "ones", (Silent, Derived, Base), (1,), {"key": 2})
    with pytest.raises(TypeError, match=r"no implementation found for .*ones' on types that"):
        handle_torch_function(torch.ones, (silent,))


def test_wrapped_functions_hand_over():
    @wrap_torch_function(lambda x, y: (x, y))
    def pair(x, y):
        return x + y

    assert pair(1, 2) == 3
    base = Base()
    assert pair(1, base)[:2] == ("base", "pair")
