"""Writing: round trips, shared memory, whole files only."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.tensor.tensor import result_maker

INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
DTYPES = [*INTEGERS, "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back(name: str) -> None:
    """Bytes of every dtype survive."""
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    found = torch.load(file)
    assert found.dtype is x.dtype
    assert found.tolist() == x.tolist()


def test_shared_memory_stays_shared(tmp_path: Path) -> None:
    """Two views of one storage are two views of one storage again."""
    x = torch.zeros(4)
    torch.save([x, x[1:3]], tmp_path / "two.pt")
    whole, part = torch.load(tmp_path / "two.pt")
    part += 1
    assert whole.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_state_dict(tmp_path: Path) -> None:
    """A module's state, through a file, into another module."""
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    torch.save(first.state_dict(), tmp_path / "model.pt")
    second.load_state_dict(torch.load(tmp_path / "model.pt"))
    x = torch.ones(1, 3)
    assert first(x).tolist() == second(x).tolist()


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path) -> None:
    """What cannot be pickled raises, and an older file stays as it was."""
    path = tmp_path / "model.pt"
    torch.save(torch.ones(1), path)
    with pytest.raises(Exception, match="pickle"):
        torch.save(lambda: None, path)
    assert torch.load(path).tolist() == [1.0]
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """torch's sentence."""
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(torch.ones(1), tmp_path / "no" / "model.pt")


def test_named_results(tmp_path: Path) -> None:
    """What max and sort give comes back under its fields, from a pickle and from a file, which
    needs leave; a name that no operator gave is a plain tuple."""
    found = [torch.ones(2, 3).max(1), torch.arange(3.0).sort()]
    torch.save(found, tmp_path / "two.pt")
    for made in (
        torch.load(tmp_path / "two.pt", weights_only=False),
        pickle.loads(pickle.dumps(found)),
    ):
        assert [type(each) for each in made] == [type(each) for each in found]
        assert [each.indices.tolist() for each in made] == [[0, 0], [0, 1, 2]]
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(tmp_path / "two.pt")
    assert type(result_maker("soft")((1, 2))) is tuple
