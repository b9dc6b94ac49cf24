"""autocast on the CPU: which operators compute in which dtype."""

import pytest

import flambeau as torch
from flambeau.nn import functional as F


def test_products_are_lower_and_losses_full():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    with torch.autocast("cpu"):
        c = a @ b
        assert torch.is_autocast_enabled("cpu")
        convolved = F.conv1d(a[None], torch.ones(2, 4, 1))
        layer = torch.nn.Linear(4, 2)
        products = torch.mm(a, b), F.linear(a, b), torch.bmm(a[None], b[None]), layer(a)
        for lower in (c, convolved, *products):
            assert lower.dtype is torch.bfloat16
        assert F.mse_loss(c, a).dtype is torch.float32
        assert torch.cat([a, c]).dtype is torch.float32
        assert (a.double() @ b.double()).dtype is torch.float64
        with torch.autocast("cpu", enabled=False):
            assert (a @ b).dtype is torch.float32
        assert (a @ b).dtype is torch.bfloat16
    assert (a @ b).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")
    assert torch.equal(c, a.bfloat16() @ b.bfloat16())


def test_gradients_have_the_parameters_dtype():
    layer = torch.nn.Linear(3, 2)
    with torch.autocast("cpu"):
        loss = layer(torch.ones(1, 3)).sum()
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32


def test_as_a_decorator():
    @torch.autocast("cpu", dtype=torch.float16)
    def product(a, b):
        return a @ b

    assert product(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float16


def test_what_does_nothing_warns():
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float32
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        torch.autocast("cpu", dtype=torch.float64)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        torch.autocast("tpu")


def test_functions_with_their_own_rules():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            assert not torch.is_autocast_enabled("cpu")
            return grad * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = Double.apply(x)
    assert y.dtype is torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
