"""What optimizers written after torch's own import."""

import pytest

import flambeau as torch
from flambeau.optim import optimizer
from flambeau.optim.optimizer import (
    Optimizer,
    _default_to_fused_or_foreach,
    _dispatch_sqrt,
    _get_value,
    _use_grad_for_differentiable,
    _view_as_real,
)


class Plain(Optimizer):
    def __init__(self, params: optimizer.ParamsT, lr=0.1, differentiable=False):
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @_use_grad_for_differentiable
    def step(self, closure=None):
        self._cuda_graph_capture_health_check()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            assert _default_to_fused_or_foreach(params, False) == (False, False)
            for (ps, gs), _ in self._group_tensors_by_device_and_dtype([params, grads]).values():
                for p, g in zip(ps, gs, strict=True):
                    p.add_(g / _dispatch_sqrt(4.0), alpha=-_get_value(torch.tensor(group["lr"])))


def test_an_optimizer_written_like_torchs_own_steps():
    parameter = torch.nn.Parameter(torch.ones(2))
    (3 * parameter).sum().backward()
    Plain([parameter], lr=1.0).step()
    assert parameter.tolist() == [-0.5, -0.5]
    assert torch.is_grad_enabled()


def test_lists_are_divided_by_dtype_with_their_places():
    single, double = torch.ones(1), torch.ones(2, dtype=torch.float64)
    grouped = Optimizer._group_tensors_by_device_and_dtype(
        [[single, double, single], [], [1, 2, 3]], with_indices=True
    )
    assert [key[1] for key in grouped] == [torch.float32, torch.float64]
    (lists, places) = grouped[(single.device, torch.float32)]
    assert (lists[1], lists[2], places) == ([], [1, 3], [0, 2])


def test_complex_tensors_are_seen_as_pairs():
    params, grads = [torch.ones(1, dtype=torch.complex64), torch.ones(1)], [torch.zeros(1)] * 2
    grads[0] = torch.zeros(1, dtype=torch.complex64)
    _view_as_real(params, grads)
    assert [tuple(p.shape) for p in (*params, *grads)] == [(1, 2), (1,), (1, 2), (1,)]


def test_what_is_not_there_raises():
    with pytest.raises(AttributeError, match=r"module 'torch.optim.optimizer' has no attribute"):
        optimizer._no_such_name  # noqa: B018
