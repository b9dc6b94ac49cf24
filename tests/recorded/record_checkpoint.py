"""Writes checkpoint.pt, and kinds.pt in both formats, with real PyTorch: what tests/io reads.

    python tests/recorded/record_checkpoint.py        (with torch 2.13 installed)

Keeps     kinds_legacy.pt holds the same object in the format from before the zip archives.
Touches   torch; writes beside this file.
Not here  the comparison (tests/io)."""

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

kinds = {
    "shared": [x, x[1:]],
    "conjugate": torch.tensor([1 + 2j]).conj(),
    "negative": torch.tensor([1 + 2j]).conj().imag,
    "sparse": torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)),
    "meta": torch.ones(2, 3, device="meta"),
    "buffer": torch.nn.Buffer(torch.ones(2)),
    "layout": torch.strided,
    "complex": torch.nn.Parameter(torch.tensor([1j])),
    "storage": torch.arange(3).storage(),
}
torch.save(kinds, Path(__file__).with_name("kinds.pt"))
torch.save(kinds, Path(__file__).with_name("kinds_legacy.pt"), _use_new_zipfile_serialization=False)
