"""Normalisation of batches without elements: nothing is learnt of them, and nothing breaks."""

import pytest

import flambeau as torch
from flambeau.nn.functional import batch_norm


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (2, 3, 0)])
def test_an_empty_batch_leaves_the_averages_alone(shape):
    x = torch.ones(shape, requires_grad=True)
    weight = torch.ones(3, requires_grad=True)
    mean, var = torch.full((3,), 0.5), torch.full((3,), 2.0)
    found = batch_norm(x, mean, var, weight, torch.ones(3), True)
    found.sum().backward()
    assert found.shape == shape
    assert x.grad.shape == shape
    assert weight.grad.tolist() == [0.0] * 3
    assert (mean.tolist(), var.tolist()) == ([0.5] * 3, [2.0] * 3)
