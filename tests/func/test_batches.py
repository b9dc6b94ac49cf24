"""vmap and stack_module_state."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call, grad, stack_module_state, vmap


def test_dims_in_and_out():
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2)
    assert torch.equal(vmap(torch.mul, in_dims=(0, 1), out_dims=1)(a, b), (a * b.T).T)
    assert torch.equal(vmap(torch.add, in_dims=(0, None))(a, torch.ones(3)), a + 1)
    nested = vmap(vmap(torch.dot))(torch.ones(2, 3, 4), torch.ones(2, 3, 4))
    assert nested.tolist() == [[4.0] * 3] * 2
    first, second = vmap(lambda d: (d["x"], d["x"].sum()))({"x": a})
    assert torch.equal(first, a)
    assert second.tolist() == [3.0, 12.0]


def test_gradients_of_single_samples():
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    parameters = {name: value.detach() for name, value in net.named_parameters()}

    def loss(parameters, x):
        return functional_call(net, parameters, (x,)).pow(2).sum()

    x = torch.randn(4, 3)
    found = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    assert found["weight"].shape == (4, 1, 3)
    expected = 2 * net(x)[:, :, None] * x[:, None, :]
    assert torch.allclose(found["weight"], expected)


def test_ensembles():
    models = [nn.Linear(3, 2) for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    assert buffers == {}
    x = torch.randn(5, 3)
    found = vmap(lambda p: functional_call(models[0], p, (x,)))(parameters)
    for number, model in enumerate(models):
        assert torch.equal(found[number], model(x))


def test_randomness():
    same = vmap(lambda x: x + torch.rand(2), randomness="same")(torch.zeros(3, 2))
    assert torch.equal(same[0], same[2])
    other = vmap(lambda x: x + torch.rand(2), randomness="different")(torch.zeros(3, 2))
    assert not torch.equal(other[0], other[2])
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(lambda x: x + torch.rand(2))(torch.zeros(3, 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_mistakes():
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        vmap(torch.dot)(torch.ones(2, 3), torch.ones(3, 3))
    with pytest.raises(ValueError, match="cannot vmap over non-Tensor arguments"):
        vmap(torch.add)(torch.ones(2), 1)
    with pytest.raises(ValueError, match=r"vmap\(dot, in_dims=3, ...\)\(<inputs>\): Got in_dim=3"):
        vmap(torch.dot, in_dims=3)(torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        vmap(torch.sin, in_dims=None)(torch.ones(2))
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda x: 1)(torch.ones(2))


def test_batch_norms_without_statistics():
    root = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    assert torch.func.replace_all_batch_norm_modules_(root) is root
    assert list(root.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert not root.eval()[1].track_running_stats
    assert torch.allclose(root(torch.randn(64, 2)).mean(0), torch.zeros(2), atol=1e-6)
