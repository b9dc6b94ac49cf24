"""The hook-based spectral norm: names, iteration in training only, removal."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import remove_spectral_norm, spectral_norm


def test_names_and_iteration():
    torch.manual_seed(0)
    layer = spectral_norm(nn.Conv2d(2, 3, 2))
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert layer.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    x = torch.randn(1, 2, 4, 4)
    before = layer.weight_u.clone()
    layer(x).sum().backward()
    assert not torch.equal(layer.weight_u, before)
    assert layer.weight_orig.grad is not None
    for _ in range(100):
        layer(x)
    matrix = layer.weight.reshape(3, -1)
    assert float(torch.linalg.matrix_norm(matrix, 2)) == pytest.approx(1.0, abs=1e-4)
    layer.eval()
    kept = layer.weight_u.clone()
    layer(x)
    assert torch.equal(layer.weight_u, kept)


def test_removal_leaves_the_normed_weight():
    layer = spectral_norm(nn.Linear(3, 2)).eval()
    layer(torch.ones(1, 3))
    weight = layer.weight.detach().clone()
    remove_spectral_norm(layer)
    assert torch.allclose(layer.weight, weight)
    assert list(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        remove_spectral_norm(layer)


def test_twice_is_refused():
    layer = spectral_norm(nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match="two spectral_norm hooks"):
        spectral_norm(layer)
