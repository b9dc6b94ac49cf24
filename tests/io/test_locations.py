"""map_location: devices, dicts and functions."""

from __future__ import annotations

import io
from typing import Any

import pytest

import flambeau as torch


def loaded(map_location: Any) -> Any:
    """A tensor written and read."""
    raw = io.BytesIO()
    torch.save(torch.ones(2), raw)
    raw.seek(0)
    return torch.load(raw, map_location=map_location)


@pytest.mark.parametrize(
    "given", ["cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda s, place: None, None]
)
def test_where_they_are(given: Any) -> None:
    assert loaded(given).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("given", ["meta", torch.device("meta"), {"cpu": "meta"}])
def test_without_data(given: Any) -> None:
    found = loaded(given)
    assert (found.device.type, found.shape) == ("meta", (2,))


def test_functions_see_storages() -> None:
    """A function is asked for each storage and told where it was."""
    seen = []

    def place(storage: Any, location: str) -> Any:
        seen.append((type(storage).__name__, len(storage), location))
        return storage.cpu()

    assert loaded(place).tolist() == [1.0, 1.0]
    assert seen == [("UntypedStorage", 8, "cpu")]
    with pytest.raises(TypeError, match=r"TypedStorage.__init__ received an invalid combination"):
        loaded(lambda storage, location: 5)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        loaded(5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cuda", r"on a CUDA device but torch.cuda.is_available\(\) is False"),
        ({"cpu": "cuda:1"}, r"on a CUDA device but torch.cuda.is_available\(\) is False"),
        ("xpu", r"on a XPU device but torch.xpu.is_available\(\) is False"),
        ("hpu", "The HPU device module is not registered"),
        ("mps", "Storage device not recognized: mps"),
        ("bogus", r"don't know how to restore data location .* \(tagged with bogus\)"),
    ],
)
def test_places_that_are_not_there(given: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        loaded(given)
