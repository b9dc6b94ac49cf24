"""Hooks of all modules: their order, what they see, what they replace."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules import module as modules


def named(log, word):
    return lambda given, *_: log.append((word, type(given).__name__))


def test_forward_and_backward_hooks_of_all_modules():
    log = []
    handles = [
        modules.register_module_forward_pre_hook(named(log, "before")),
        modules.register_module_forward_hook(named(log, "after"), with_kwargs=True),
        modules.register_module_full_backward_pre_hook(named(log, "gradient arrives")),
        modules.register_module_full_backward_hook(named(log, "gradient leaves")),
    ]
    x = torch.ones(1, 2, requires_grad=True)
    nn.Sequential(nn.Tanh())(x).sum().backward()
    for handle in handles:
        handle.remove()
    assert log == [
        ("before", "Sequential"), ("before", "Tanh"), ("after", "Tanh"), ("after", "Sequential"),
        ("gradient arrives", "Sequential"), ("gradient arrives", "Tanh"),
        ("gradient leaves", "Tanh"), ("gradient leaves", "Sequential"),
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="as a global Module hook"):
        modules.register_module_backward_hook(named(log, "never"))
    nn.Tanh()(x)
    assert len(log) == 8


def test_a_hook_of_all_modules_replaces_gradients_before_a_modules_own():
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda m, grad_input, _: (grad_input[0] + 1,))
    x = torch.zeros(1, requires_grad=True)
    with modules.register_module_full_backward_hook(lambda m, grad_input, _: (grad_input[0] * 2,)):
        layer(x).backward()
    assert x.grad.tolist() == [3.0]


def test_registration_hooks():
    log = []

    def note(module, name, value):
        log.append((type(module).__name__, name, type(value).__name__))

    with (
        modules.register_module_parameter_registration_hook(note),
        modules.register_module_buffer_registration_hook(note),
        modules.register_module_module_registration_hook(note),
    ):
        net = nn.Sequential(nn.Linear(1, 1, bias=False))
        net.register_buffer("count", torch.zeros(1))
        net.count = torch.ones(1)
        net.last = nn.Tanh()
    assert log == [
        ("Linear", "weight", "Parameter"), ("Sequential", "0", "Linear"),
        ("Sequential", "count", "Tensor"), ("Sequential", "count", "Tensor"),
        ("Sequential", "last", "Tanh"),
    ]  # fmt: skip


def test_a_registration_hook_replaces_what_is_registered():
    def sevens(module, name, parameter):
        return nn.Parameter(torch.full_like(parameter, 7.0))

    module = nn.Module()
    with modules.register_module_parameter_registration_hook(sevens):
        module.weight = nn.Parameter(torch.zeros(2))
    assert module.weight.tolist() == [7.0, 7.0]
