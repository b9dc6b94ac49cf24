"""The older names for CUDA."""

import pytest

import flambeau as torch
from flambeau.cuda import amp


def test_old_names_warn_and_do_nothing_here():
    with pytest.warns(FutureWarning, match=r"GradScaler.args\.\.\."):
        scaler = amp.GradScaler(enabled=False)
    assert not scaler.is_enabled()
    with pytest.warns(FutureWarning, match=r"autocast.args\.\.\."):
        region = amp.autocast(enabled=False)
    with region:
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float32
