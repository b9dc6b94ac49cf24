"""Sequences packed."""

import pytest

import flambeau as torch


def test_lengths_and_sequences_that_cannot_be_packed():
    with pytest.raises(RuntimeError, match="argument should be a 1D CPU int64 tensor, but got 2D"):
        torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 1, 1), torch.tensor([[1]]))
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 0, 1), [])
