"""The device of tensors made without one: set for good, or for a block."""

import pytest

import flambeau as torch
from flambeau import nn


def test_block_chooses_and_gives_back():
    with torch.device("meta") as chosen:
        assert chosen is torch.get_default_device()
        layer = nn.Linear(3, 2)
        assert layer.weight.is_meta
        assert torch.zeros(2, 3).is_meta
        assert torch.randn(2).is_meta
        assert torch.tensor([1.0]).is_meta
        assert torch.triu_indices(2, 2).is_meta
        assert torch.ones(2, device="cpu").tolist() == [1.0, 1.0]
        with torch.device("cpu"):
            assert torch.zeros(2, 3).tolist() == [[0.0] * 3] * 2
        assert torch.zeros(2, 3).is_meta
        assert layer(torch.zeros(4, 3)).shape == (4, 2)
    assert torch.zeros(2, 3).tolist() == [[0.0] * 3] * 2
    with pytest.raises(NotImplementedError, match="Please use torch"):
        layer.to("cpu")
    assert not layer.to_empty(device="cpu").weight.is_meta


def test_given_back_after_an_error():
    with pytest.raises(KeyError), torch.device("meta"):
        raise KeyError
    assert not torch.ones(1).is_meta


def test_a_device_that_is_not_there_raises_where_a_tensor_is_made():
    with (
        torch.device("cuda"),
        pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"),
    ):
        torch.zeros(2)


def test_set_default_device_holds_until_it_is_set_again():
    torch.set_default_device("meta")
    try:
        assert torch.ones(5, 7).is_meta
        with torch.device("cpu"):
            assert not torch.ones(5, 7).is_meta
        assert torch.ones(5, 7).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(5, 7).is_meta
