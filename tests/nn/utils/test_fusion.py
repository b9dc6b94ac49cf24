"""A layer and a batch norm as one layer."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval


def test_fused_layers_compute_the_same():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(3)
    norm(torch.randn(4, 3, 2, 2) * 2 + 1)
    x = torch.randn(1, 2, 4, 4)
    conv, norm = nn.Conv2d(2, 3, 2).eval(), norm.eval()
    assert torch.allclose(fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-6)
    turned = nn.ConvTranspose2d(2, 3, 2).eval()
    assert torch.allclose(
        fuse_conv_bn_eval(turned, norm, transpose=True)(x), norm(turned(x)), atol=1e-6
    )
    linear, flat = nn.Linear(2, 3, bias=False).eval(), nn.BatchNorm1d(3).eval()
    rows = torch.randn(5, 2)
    assert torch.allclose(fuse_linear_bn_eval(linear, flat)(rows), flat(linear(rows)), atol=1e-6)


def test_training_layers_are_refused():
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        fuse_conv_bn_eval(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3))
