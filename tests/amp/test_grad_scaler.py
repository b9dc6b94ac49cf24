"""GradScaler: scales, skips, grows, and is saved."""

import pytest

import flambeau as torch


def trained(scaler, factors):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scales = []
    for factor in factors:
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return w.detach().tolist(), scales


def test_an_overflow_is_skipped_and_lowers_the_scale():
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    weights, scales = trained(scaler, [1.0, 1.0, float("inf"), 1.0])
    assert weights == [-0.5, -0.5]
    assert scales == [8.0, 16.0, 8.0, 8.0]
    assert scaler.state_dict() == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
        "_growth_tracker": 1,
    }  # fmt: skip
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_gradients_can_be_clipped_between():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale(w * 10).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [10.0]
    torch.nn.utils.clip_grad_norm_([w], 1.0)
    with pytest.raises(RuntimeError, match=r"unscale_.. has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step.. has already been called"):
        scaler.step(optimizer)
    scaler.update()
    assert float(w) == pytest.approx(0.0, abs=1e-5)


def test_disabled_it_does_nothing():
    scaler = torch.amp.GradScaler(enabled=False)
    loss = torch.ones(1, requires_grad=True).sum()
    assert scaler.scale(loss) is loss
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.amp.GradScaler().is_enabled()
