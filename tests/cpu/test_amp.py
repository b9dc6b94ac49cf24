"""torch.cpu: one device, and the older names of amp."""

import pytest

import flambeau as torch
from flambeau.cpu import amp


def test_one_device_that_is_always_there():
    assert torch.cpu.is_available()
    assert torch.cpu.device_count() == 1
    assert torch.cpu.current_device() == "cpu"
    torch.cpu.synchronize()


def test_old_names_warn_and_work():
    with pytest.warns(FutureWarning, match=r"autocast.args\.\.\."):
        region = amp.autocast()
    with region:
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.bfloat16
    with pytest.warns(FutureWarning, match=r"GradScaler.args\.\.\."):
        assert amp.GradScaler().is_enabled()
