"""Initial values: torch's draws (first and sum recorded from torch 2.13), and its errors."""

import math

import pytest

import flambeau as torch
from flambeau.nn import init

# After manual_seed(2), of a (6, 4) float32 tensor: first element, sum.
RECORDED = {
    "uniform_ a=-1.0, b=3.0": (1.458780288696289, 25.13942003250122),
    "normal_ mean=1.0, std=0.5": (0.4795994162559509, 20.85991072654724),
    "xavier_uniform_ gain=2.0": (0.3553696870803833, 0.8825909718871117),
    "xavier_normal_": (-0.4654604196548462, -2.8085811138153076),
    "kaiming_uniform_ a=5**0.5": (0.11469507217407227, 0.2848550081253052),
    "kaiming_normal_ mode='fan_out', nonlinearity='relu'": (
        -0.6009068489074707,
        -3.625862777233124,
    ),
    "trunc_normal_ std=0.02": (-0.020816022530198097, -0.12560356594622135),
    "trunc_normal_ a=-0.5, b=0.5": (-0.003390141064301133, -0.8130573260132223),
    "trunc_normal_ a=1.0, b=2.0": (1.552952766418457, 32.95375633239746),
    "orthogonal_": (-0.5041762590408325, -2.3085813224315643),
    "sparse_ sparsity=0.3": (0.0, -0.06112540821777657),
}


def filled(name, shape=(6, 4), **named):
    torch.manual_seed(2)
    return getattr(init, name)(torch.empty(shape), **named)


@pytest.mark.parametrize("key", RECORDED)
def test_draws_are_torchs(key):
    name, _, arguments = key.partition(" ")
    given = filled(name, **eval(f"dict({arguments})"))
    first, total = RECORDED[key]
    close = 3e-7 if name == "orthogonal_" else 0
    assert abs(given.flatten()[0].item() - first) <= close
    assert given.double().sum().item() == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 2, 5)])
def test_orthogonal_is_orthogonal(shape):
    flat = filled("orthogonal_", shape, gain=2).reshape(shape[0], -1).double() / 2
    small = flat @ flat.t() if flat.shape[0] <= flat.shape[1] else flat.t() @ flat
    assert torch.allclose(small, torch.eye(small.shape[0], dtype=torch.float64), atol=1e-6)


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
    with pytest.raises(ValueError, match="Unsupported nonlinearity nothing"):
        init.calculate_gain("nothing")


def test_errors_are_torchs():
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed for tensor with"):
        init.xavier_uniform_(torch.empty(4))
    with pytest.raises(ValueError, match="Mode sideways not supported, please use one of"):
        init.kaiming_normal_(torch.empty(4, 4), mode="sideways")
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(torch.empty(4))
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 4))
    with pytest.warns(FutureWarning, match=r"`nn.init.normal` is now deprecated in favor of"):
        init.normal(torch.empty(2))


def test_filling_leaves_no_history():
    weight = torch.nn.Parameter(torch.empty(3, 3))
    assert init.constant_(weight, 2.5) is weight
    assert weight.is_leaf
    assert init.dirac_(torch.empty(4, 2, 3), 2)[:, :, 1].tolist() == [[1, 0], [0, 1]] * 2
