"""Hooks of modules that are called whatever happens, of one module and of all."""

import pytest

import flambeau as torch


class Failing(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no")


def call(module):
    with pytest.raises(ValueError, match="no"):
        module(torch.zeros(1))


def test_a_hook_that_is_always_called_sees_a_failed_forward():
    module, seen = Failing(), []
    module.register_forward_hook(lambda *_: seen.append("plain"))
    module.register_forward_hook(lambda *values: seen.append(values[-1]), always_call=True)
    call(module)
    assert seen == [None]


def test_so_does_a_hook_of_all_modules():
    seen = []
    register = torch.nn.modules.module.register_module_forward_hook
    with register(lambda module, *_: seen.append(type(module)), always_call=True):
        call(Failing())
        torch.nn.Identity()(torch.zeros(1))
    call(Failing())
    assert seen == [Failing, torch.nn.Identity]


def test_a_hook_that_raised_is_not_called_again_but_later_ones_are():
    module, seen = torch.nn.Identity(), []

    def first(*_):
        seen.append("first")
        raise ValueError("no")

    module.register_forward_hook(first, always_call=True)
    module.register_forward_hook(lambda *_: seen.append("second"), always_call=True)
    call(module)
    assert seen == ["first", "second"]


def test_what_it_raises_itself_becomes_a_warning():
    module = Failing()
    module.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="silenced as another error was raised in forward"):
        call(module)


def test_prepended_hooks_come_first_and_handles_take_them_away():
    module, seen = torch.nn.Identity(), []
    module.register_forward_hook(lambda *_: seen.append("later"))
    with module.register_forward_hook(lambda *_: seen.append("first"), prepend=True):
        module(torch.zeros(1))
    module(torch.zeros(1))
    assert seen == ["first", "later", "later"]
