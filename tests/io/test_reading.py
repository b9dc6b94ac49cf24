"""Reading: PyTorch's own file, and files that are damaged, foreign or malicious."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import pytest

import flambeau as torch

CHECKPOINT = Path(__file__).parents[1] / "recorded" / "checkpoint.pt"


def test_a_file_of_pytorchs() -> None:
    """Every kind of value comes back, views share memory."""
    found = torch.load(CHECKPOINT)
    assert found["whole"].tolist()[2] == [2.0, 2.25, 2.5, 2.75]
    assert found["view"].stride() == (4, 2)
    assert found["transposed"].stride() == (1, 4)
    assert found["integers"].tolist() == [0, 1, 2, 3, 4]
    assert found["half"].dtype is torch.bfloat16
    assert isinstance(found["parameter"], torch.nn.Parameter)
    assert found["parameter"].requires_grad
    assert found["flag"].item() is True
    assert found["empty"].shape == (0,)
    assert found["shape"] == torch.Size([3, 4])
    assert found["dtype"] is torch.float32
    assert found["plain"] == [1, 2.5, None, "text", (True, {"a": b"b"})]
    found["whole"][1, 0] = 100
    assert found["view"][0, 0].item() == 100


@pytest.mark.parametrize("kept", [4, 30, 200, 1000, 2000])
def test_truncated_files_raise(tmp_path: Path, kept: int) -> None:
    """A file cut short is an error, never half a result."""
    path = tmp_path / "cut.pt"
    path.write_bytes(CHECKPOINT.read_bytes()[:kept])
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
        torch.load(path)


def test_damaged_bytes_raise(tmp_path: Path) -> None:
    """A flipped byte in an entry fails its checksum."""
    raw = bytearray(CHECKPOINT.read_bytes())
    place = raw.index(b"data.pkl") + 200
    raw[place] ^= 0xFF
    path = tmp_path / "flipped.pt"
    path.write_bytes(raw)
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        torch.load(path)


class _Malicious:
    def __reduce__(self) -> object:
        return (os.system, ("touch flambeau-was-here",))


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    """A pickle that asks for a function of Python's is refused."""
    path = tmp_path / "malicious.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Malicious(), protocol=2))
        archive.writestr("archive/version", "3\n")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(path)


def test_a_view_beyond_its_storage_is_refused() -> None:
    """Sizes that a storage does not hold are an error, not foreign memory."""
    raw = io.BytesIO()
    torch.save({"x": torch.ones(4)}, raw)
    with zipfile.ZipFile(raw) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["archive/data.pkl"] = entries["archive/data.pkl"].replace(b"K\x04\x85", b"K\x7f\x85")
    broken = io.BytesIO()
    with zipfile.ZipFile(broken, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    broken.seek(0)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        torch.load(broken)


def test_not_there() -> None:
    """A path that does not exist raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        torch.load("does-not-exist.pt")


def test_neither_path_nor_file():
    with pytest.raises(AttributeError, match=r"'int' object has no attribute 'seek'"):
        torch.load(5)
