"""Writes checkpoint.pt with real PyTorch: what tests/io reads. Run with torch 2.13 installed."""

from pathlib import Path

import torch

x = torch.arange(12.0).reshape(3, 4) / 4
torch.save(
    {
        "whole": x,
        "view": x[1:, ::2],
        "transposed": x.t(),
        "integers": torch.arange(5),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "flag": torch.tensor(True),
        "empty": torch.empty(0),
        "shape": x.shape,
        "dtype": torch.float32,
        "plain": [1, 2.5, None, "text", (True, {"a": b"b"})],
    },
    Path(__file__).with_name("checkpoint.pt"),
)
