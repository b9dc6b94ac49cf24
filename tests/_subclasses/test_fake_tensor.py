"""Tensors that a tracer made: there are none."""

import flambeau as torch
from flambeau._subclasses import FakeTensor, fake_tensor
from flambeau.fx.experimental import proxy_tensor


def test_nothing_is_traced():
    assert not fake_tensor.is_fake(torch.ones(1))
    assert not isinstance(torch.empty(1, device="meta"), FakeTensor)
    assert proxy_tensor.get_proxy_mode() is None
    assert torch._C._are_functorch_transforms_active() is False
