"""Averaged models and SWALR."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    update_bn,
)


def averages(**settings):
    model = nn.Linear(1, 1, bias=False)
    averaged = AveragedModel(model, **settings)
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        averaged.update_parameters(model)
    assert int(averaged.n_averaged) == 3
    return averaged.module.weight.item()


def test_averages():
    assert averages() == pytest.approx(3.0)
    assert averages(multi_avg_fn=get_ema_multi_avg_fn(0.5)) == pytest.approx(3.75)
    assert averages(avg_fn=get_ema_avg_fn(0.5)) == pytest.approx(3.75)
    assert averages(use_buffers=True) == pytest.approx(3.0)


def test_names():
    model = AveragedModel(nn.Linear(2, 1))
    assert list(model.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        get_ema_avg_fn(2)


def test_batch_norm_statistics():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)).eval()
    batches = [torch.tensor([[0.0, 2.0], [2.0, 4.0]]), [torch.tensor([[4.0, 0.0], [6.0, 2.0]])]]
    update_bn(batches, model)
    assert model[0].running_mean.tolist() == [3.0, 2.0]
    assert model[0].momentum == 0.1
    assert not model.training


@pytest.mark.parametrize(
    "strategy, expected",
    [("linear", [0.4, 0.3, 0.2, 0.2]), ("cos", [0.425, 0.275, 0.2, 0.2])],
)
def test_rates(strategy, expected):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    schedule = SWALR(optimizer, swa_lr=0.2, anneal_epochs=3, anneal_strategy=strategy)
    found = []
    for _ in range(4):
        optimizer.step()
        schedule.step()
        found += schedule.get_last_lr()
    assert found == pytest.approx(expected)
