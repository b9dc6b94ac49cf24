"""orthogonal, spectral_norm and weight_norm as parametrizations."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import parametrizations, weight_norm


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_stays_orthogonal_while_trained(orthogonal_map, shape):
    torch.manual_seed(0)
    layer = nn.Linear(*shape, dtype=torch.float64)
    parametrizations.orthogonal(layer, orthogonal_map=orthogonal_map)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.randn(6, shape[0], dtype=torch.float64)).pow(3).sum().backward()
        optimizer.step()
    weight = layer.weight if shape[0] <= shape[1] else layer.weight.T
    unit = torch.eye(min(shape), dtype=torch.float64)
    assert torch.allclose(weight.T @ weight, unit, atol=1e-10)


def test_orthogonal_can_be_assigned():
    layer = parametrizations.orthogonal(nn.Linear(3, 3))
    layer.weight = torch.eye(3)
    assert torch.allclose(layer.weight, torch.eye(3))
    plain = parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        plain.weight = torch.eye(3)


def test_householder_without_a_base_takes_an_orthogonal_matrix_back():
    torch.manual_seed(0)
    layer = nn.Linear(3, 5, dtype=torch.float64)
    q, _ = torch.linalg.qr(torch.randn(5, 3, dtype=torch.float64))
    parametrizations.orthogonal(layer, orthogonal_map="householder", use_trivialization=False)
    layer.weight = q
    assert torch.allclose(layer.weight, q)


def test_spectral_norm_approaches_one():
    torch.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=20)
    layer(torch.randn(2, 5))
    assert float(torch.linalg.matrix_norm(layer.weight, 2)) == pytest.approx(1.0, abs=1e-3)
    assert list(layer.state_dict()) == [
        "bias", "parametrizations.weight.original", "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
    ]  # fmt: skip


def test_weight_norm_reads_the_older_forms_state():
    with pytest.warns(FutureWarning, match="weight_norm"):
        older = weight_norm(nn.Linear(3, 2))
    newer = parametrizations.weight_norm(nn.Linear(3, 2))
    newer.load_state_dict(older.state_dict())
    assert torch.allclose(newer.weight, older.weight)
    assert newer.parametrizations.weight.original0.shape == (2, 1)
