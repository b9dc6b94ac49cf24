"""Large results, which are stored past the caches: whole, in rows that begin anywhere, in place."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import dtypes
from flambeau.codegen import nest_text
from flambeau.codegen.loops import Access, Nest, Phase, Store
from flambeau.codegen.nest_text.frame import LARGE_BYTES
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import expression

COUNT = LARGE_BYTES // 4 + 77


def text_of(element: dtypes.dtype) -> str:
    loaded = expression("load", (), element, 0)
    value = k.convert(k.add(k.convert(loaded, element.compute), 1), element)
    nest = Nest("rows", 0, (Access(element), Access(element)), (Phase((Store(1, value),)),))
    return nest_text.kernel_text(nest, 256, "f")


def test_the_text_has_both_ways_and_a_fence() -> None:
    text = text_of(dtypes.float32)
    assert text.count("!nontemporal") == 1
    assert "call void @llvm.x86.sse.sfence()" in text
    assert "nontemporal" not in text_of(dtypes.bfloat16)


def test_elementwise() -> None:
    values = np.arange(COUNT, dtype=np.float32)
    given = torch.from_numpy(values)
    assert ((given * 2 + 1).numpy() == values * 2 + 1).all()
    held = torch.zeros(COUNT + 5)
    torch.add(given, 1, out=held[3:-2])
    assert held[:3].tolist() == [0.0] * 3
    assert held[-2:].tolist() == [0.0] * 2
    assert (held[3:-2].numpy() == values + 1).all()
    both = given.clone()
    both += given
    both += 1
    assert (both.numpy() == values * 2 + 1).all()


@pytest.mark.parametrize("width", [1024, 1001])
def test_rows(width: int) -> None:
    """A row's result does not depend on the batch it is in."""
    rows = COUNT // width + 1
    given = torch.rand(rows, width)
    for function in (
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.layer_norm(x, (width,)),
    ):
        whole = function(given)
        assert whole.numel() * 4 >= LARGE_BYTES
        for first in (0, rows // 2, rows - 50):
            part = slice(first, first + 50)
            assert (whole[part] == function(given[part].clone())).all().item()
