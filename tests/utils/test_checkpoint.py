"""checkpoint: the same gradients, values computed again, random numbers drawn again."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def gradients(run):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 4), nn.ReLU())
    x = torch.randn(3, 4, requires_grad=True)
    run(net, x).pow(2).sum().backward()
    return [x.grad, *[each.grad for each in net.parameters()], torch.rand(2)]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_are_those_without_it(use_reentrant):
    plain = gradients(lambda net, x: net(x))
    for run in (
        lambda net, x: checkpoint(net, x, use_reentrant=use_reentrant),
        lambda net, x: checkpoint_sequential(net, 2, x, use_reentrant=use_reentrant),
    ):
        for given, wanted in zip(gradients(run), plain, strict=True):
            assert torch.equal(given, wanted)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_the_function_runs_again_in_the_backward_pass(use_reentrant):
    calls = []

    def function(x):
        calls.append(torch.is_grad_enabled())
        return x.exp().sin()

    x = torch.ones(2, requires_grad=True)
    y = checkpoint(function, x, use_reentrant=use_reentrant)
    assert len(calls) == 1
    y.sum().backward()
    assert calls == [not use_reentrant, True]
    checkpoint(function, torch.ones(2), use_reentrant=False)
    assert len(calls) == 3


def test_keywords_and_grad():
    x = torch.ones(2, requires_grad=True)
    y = checkpoint(lambda x, *, by: (x * by).exp(), x, by=2.0, use_reentrant=False)
    (found,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(found, 2 * torch.exp(torch.full((2,), 2.0)))
    with pytest.raises(ValueError, match="Unexpected keyword arguments: by"):
        checkpoint(torch.exp, x, by=2.0, use_reentrant=True)


def test_a_second_run_that_saves_something_else_is_an_error():
    widths = [2, 3]

    def function(x):
        return x.expand(widths.pop(0), 2).exp().sum()

    y = checkpoint(function, torch.ones(1, 2, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata than during the forward"):
        y.backward()


def test_the_form_has_to_be_said():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(torch.exp, torch.ones(1, requires_grad=True))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(torch.exp, torch.ones(1), use_reentrant=True)


def test_there_are_no_other_devices_to_put_back():
    from flambeau.utils.checkpoint import get_device_states, set_device_states

    devices, states = get_device_states(torch.ones(1), "no tensor")
    assert (devices, states) == ([], [])
    set_device_states(devices, states)


@pytest.mark.parametrize("stops", [True, False])
def test_a_second_run_ends_with_the_last_value_asked_for(stops):
    runs = []

    def function(x):
        made = x.sin().cos()
        runs.append(1)
        return made

    x = torch.ones(2, requires_grad=True)
    with torch.utils.checkpoint.set_checkpoint_early_stop(stops):
        made = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    made.sum().backward()
    assert len(runs) == 2 - stops
    other = torch.ones(2, requires_grad=True)
    other.sin().cos().sum().backward()
    assert torch.equal(x.grad, other.grad)


def test_the_older_form_is_for_passes_to_all_leaves():
    x = torch.ones(2, requires_grad=True)
    made = torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"is incompatible with \.grad"):
        torch.autograd.grad(made.sum(), x)
    torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True).sum().backward()
    assert x.grad is not None
