"""Zip archives: what PyTorch writes besides plain tensors, byte orders, windows on files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch

RECORDED = Path(__file__).parents[1] / "recorded"


def changed(change: Any) -> io.BytesIO:
    """A small archive with change(name, bytes) for the bytes of each entry; None drops it."""
    raw, made = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.arange(3.0), "c": torch.tensor([1 + 2j])}, raw)
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = change(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
    made.seek(0)
    return made


@pytest.mark.parametrize("name", ["kinds.pt", "kinds_legacy.pt"])
def test_every_kind_of_pytorchs(name: str) -> None:
    """Views share memory; lazily conjugated and negated tensors have the values that were seen."""
    found = torch.load(RECORDED / name)
    whole, part = found["shared"]
    whole[1, 0] = 100.0
    assert part[0, 0].item() == 100.0
    assert found["conjugate"].tolist() == [1 - 2j]
    assert found["negative"].tolist() == [-2.0]
    assert found["sparse"].to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert found["meta"].device.type == "meta"
    assert found["meta"].shape == (2, 3)
    assert isinstance(found["buffer"], torch.nn.Buffer)
    assert found["layout"] is torch.strided
    assert found["complex"].requires_grad
    assert found["storage"].tolist() == [0, 1, 2]


def test_the_same_kinds_written() -> None:
    """What is written is read again, in both formats."""
    for is_zip in (True, False):
        raw = io.BytesIO()
        found = torch.load(RECORDED / "kinds.pt")
        torch.save(found, raw, _use_new_zipfile_serialization=is_zip)
        raw.seek(0)
        again = torch.load(raw)
        assert again["conjugate"].tolist() == [1 - 2j]
        assert again["sparse"].to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
        assert again["meta"].shape == (2, 3)
        assert again["storage"].tolist() == [0, 1, 2]


def test_byte_order() -> None:
    """Numbers of machines with the other byte order are turned around, each half of a complex."""

    def big(name: str, data: bytes) -> bytes:
        if name == "byteorder":
            return b"big"
        numbers = [data[place : place + 4][::-1] for place in range(0, len(data), 4)]
        return b"".join(numbers) if name.startswith("data/") else data

    found = torch.load(changed(big))
    assert found["a"].tolist() == [0.0, 1.0, 2.0]
    assert found["c"].tolist() == [1 + 2j]
    with pytest.raises(ValueError, match="Unknown endianness type: odd"):
        torch.load(changed(lambda name, data: b"odd" if name == "byteorder" else data))


def test_storages_of_another_size() -> None:
    """An entry that is too short or too long is damaged."""
    for change in (lambda data: data[:-1], lambda data: data + b"."):
        with pytest.raises(RuntimeError, match=r"record size \(1[13] bytes\) does not match"):
            torch.load(changed(lambda n, d, change=change: change(d) if n == "data/0" else d))


def test_windows(tmp_path: Path) -> None:
    """With mmap=True tensors lie in the file; what is written to them does not reach it."""
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(4.0), "b": torch.ones(3, dtype=torch.float64)}, path)
    found = torch.load(path, mmap=True)
    found["a"].add_(1)
    assert (found["a"] * 2).tolist() == [2.0, 4.0, 6.0, 8.0]
    assert found["b"].sum().item() == 3.0
    assert torch.load(path)["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    with path.open("rb") as file, pytest.raises(ValueError, match="f must be a file path in order"):
        torch.load(file, mmap=True)


def test_names_of_pickle_modules(tmp_path: Path) -> None:
    """A pickle module of one's own and weights_only=True exclude each other."""
    import pickle

    torch.save(torch.ones(1), tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", pickle_module=pickle).item() == 1.0
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        torch.load(tmp_path / "x.pt", encoding="latin1")
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit"):
        torch.load(tmp_path / "x.pt", pickle_module=pickle, weights_only=True)


def test_a_matrix_by_rows_and_one_whose_columns_lie_outside():
    rows = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2))
    file = io.BytesIO()
    torch.save(rows, file)
    found = torch.load(io.BytesIO(file.getvalue()))
    assert found.is_sparse_csr
    assert found.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
    rows._columns = torch.tensor([1, 7])
    file = io.BytesIO()
    torch.save(rows, file)
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.load(io.BytesIO(file.getvalue()))
