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


def test_one_module_has_one_kind_of_backward_hooks():
    kinds = ("register_backward_hook", "register_full_backward_hook")
    for first, second in (kinds, kinds[::-1]):
        module = torch.nn.Identity()
        getattr(module, first)(lambda *_: None)
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
            getattr(module, second)(lambda *_: None)


def test_a_regular_backward_hook_is_the_last_nodes():
    module, seen = torch.nn.Linear(2, 3), []
    module.register_backward_hook(lambda *given: seen.append(given[1:]))
    with pytest.warns(FutureWarning, match="contains multiple autograd Nodes"):
        found = module(torch.ones(1, 2, requires_grad=True))
    found.sum().backward()
    ((inputs, outputs),) = seen
    assert [each.shape for each in outputs] == [(1, 3)]
    assert (3,) in [each.shape for each in inputs]  # the bias, an operand of the node


@pytest.mark.parametrize(
    ("register", "returned", "message"),
    [("register_full_backward_hook", (None, None), "hook returned an invalid number of grad_input"),
     ("register_full_backward_pre_hook", (None, None), "pre hook returned an invalid number of"),
     ("register_full_backward_hook", 3, "has no len")],
)  # fmt: skip
def test_backward_hooks_return_as_many_gradients_as_they_get(register, returned, message):
    module = torch.nn.Tanh()
    getattr(module, register)(lambda *_: returned)
    found = module(torch.ones(2, requires_grad=True))
    with pytest.raises((RuntimeError, TypeError), match=message):
        found.sum().backward()


def test_hooks_of_state_dicts_return_nothing():
    module = torch.nn.Linear(1, 1)
    module.register_load_state_dict_post_hook(lambda *_: 3)
    with pytest.raises(AssertionError, match="are not expected to return new values"):
        module.load_state_dict(module.state_dict())
    module.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        module.state_dict()
