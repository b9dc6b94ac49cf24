"""The format from before the zip archives: several objects in a file, damaged files."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch


def written(*objects: Any) -> bytes:
    """The objects, one behind the other."""
    raw = io.BytesIO()
    for each in objects:
        torch.save(each, raw, _use_new_zipfile_serialization=False)
    return raw.getvalue()


def test_one_behind_the_other() -> None:
    """load() leaves the file where the next object begins."""
    file = io.BytesIO(written(torch.arange(3), {"a": torch.ones(2, requires_grad=True)}))
    assert torch.load(file).tolist() == [0, 1, 2]
    assert torch.load(file)["a"].requires_grad
    with pytest.raises(EOFError):
        torch.load(file)


@pytest.mark.parametrize("kept", [1, 14, 100, -400, -8, -1])
def test_short_files(kept: int) -> None:
    """A file that ends too early raises."""
    with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
        torch.load(io.BytesIO(written(torch.ones(100))[:kept]))


def test_what_is_missing_is_counted() -> None:
    with pytest.raises(RuntimeError, match=r"unexpected EOF, expected 3 more bytes\. The file"):
        torch.load(io.BytesIO(written(torch.ones(100))[:-3]))


def test_foreign_pickles() -> None:
    """A pickle of something else is no file of torch.save."""
    for raw in (pickle.dumps({"a": 1}), pickle.dumps(5, 2)):
        with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
            torch.load(io.BytesIO(raw))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(io.BytesIO(pickle.dumps(print, 2)))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(io.BytesIO(b"<html>"))


def test_windows_need_archives(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(written(torch.ones(1)))
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(path, mmap=True)
