"""Losses place by place: what is no number is no number in gradients either."""

import math

import pytest

import flambeau as torch
from flambeau.nn import functional as F


@pytest.mark.parametrize(
    "loss",
    [
        F.smooth_l1_loss,
        F.huber_loss,
        F.mse_loss,
        lambda x, y: F.smooth_l1_loss(x, y, beta=2.0),
        lambda x, y: F.huber_loss(x, y, delta=0.3),
    ],
)
def test_a_loss_that_is_no_number_has_such_a_gradient(loss):
    x = torch.tensor([math.nan, 1.0], requires_grad=True)
    loss(x, torch.zeros(2)).backward()
    assert math.isnan(x.grad[0].item())
    assert math.isfinite(x.grad[1].item())
