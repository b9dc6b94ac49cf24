"""Adam's own settings."""

import pytest

import flambeau as torch


def stepped(betas):
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([parameter], betas=betas)
    for number in range(3):
        parameter.grad = torch.full((2,), float(number + 1))
        optimizer.step()
    return parameter.detach(), optimizer


def test_betas_may_be_tensors_and_stay_so():
    given, optimizer = stepped((torch.tensor(0.75), torch.tensor(0.5)))
    assert torch.equal(given, stepped((0.75, 0.5))[0])
    assert isinstance(optimizer.param_groups[0]["betas"][0], torch.Tensor)


@pytest.mark.parametrize(
    ("betas", "named", "says"),
    [
        ((torch.tensor(0.9), 0.9), {}, "betas must be either both floats or both Tensors"),
        ((0, 0.9), {}, "betas must be either both floats or both Tensors"),
        ((torch.tensor(0.9),) * 2, {"foreach": True}, "as a Tensor is not supported for capturabl"),
        ((torch.tensor([0.9]), torch.tensor([0.9, 0.8])), {}, "must be 1-element|ambiguous"),
    ],
)
def test_betas_that_are_refused(betas, named, says):
    with pytest.raises((ValueError, RuntimeError), match=says):
        torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], betas=betas, **named)
