"""Normalisation of batches without elements, and of half precision beside float32 parameters."""

import pytest

import flambeau as torch
from flambeau.nn.functional import batch_norm, group_norm


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_beside_float32_parameters(dtype):
    x = torch.tensor([[1.0, 3.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.5]], dtype=dtype, requires_grad=True)
    weight, bias = torch.full((4,), 1.7, requires_grad=True), torch.full((4,), 0.1)
    found = group_norm(x, 2, weight, bias)
    wanted = group_norm(x.float(), 2, weight, bias)
    assert found.dtype is dtype
    assert found.tolist() == wanted.to(dtype).tolist()
    found.sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == (dtype, torch.float32)
    with pytest.raises(RuntimeError, match=r"mixed dtype \(CPU\): all inputs must share"):
        group_norm(x.double(), 2, weight, bias)


def test_running_averages_of_half_precision_are_not_rounded_to_it():
    x = torch.tensor([[1.0], [1.0009765625]], dtype=torch.float16)
    mean, var = torch.zeros(1), torch.ones(1)
    batch_norm(x, mean, var, training=True, momentum=1.0)
    assert mean.item() == 1.00048828125
