"""Elements dropped at random."""

import pytest

import flambeau as torch


@pytest.mark.parametrize("name", ["dropout", "dropout1d", "alpha_dropout"])
def test_without_memory_nothing_is_drawn(name):
    before = torch.get_rng_state()
    function = getattr(torch.nn.functional, name)
    made = function(torch.empty(2, 3, 4, device="meta"), training=True)
    assert made.is_meta
    assert made.shape == (2, 3, 4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_whole_layer_without_memory():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, device="meta")
    assert layer(torch.empty(2, 3, 4, device="meta")).is_meta
