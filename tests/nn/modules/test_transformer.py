"""Encoders of copied layers."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({}, "encoder_layer.self_attn.batch_first was not True"),
        ({"batch_first": True, "norm_first": True}, "encoder_layer.norm_first was True"),
        ({"batch_first": True, "bias": False}, "encoder_layer.self_attn was passed bias=False"),
        ({"batch_first": True, "activation": torch.tanh}, "activation_relu_or_gelu was not True"),
    ],
)
def test_why_padded_batches_are_not_nested(named, why):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, **named)
    with pytest.warns(UserWarning, match=why):
        torch.nn.TransformerEncoder(layer, 1)


def test_nothing_is_said_where_they_would_be():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    torch.nn.TransformerEncoder(layer, 1)
    torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2), 1, None, False)
