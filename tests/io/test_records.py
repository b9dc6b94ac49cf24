"""Records of a saved file."""

import io

import pytest

import flambeau as torch


def test_records_are_read_by_name():
    file = io.BytesIO()
    torch.save({"x": torch.arange(3, dtype=torch.uint8)}, file)
    reader = torch.PyTorchFileReader(file)
    assert reader.get_record("data/0") == b"\x00\x01\x02"
    assert {"data.pkl", "data/0"} <= set(reader.get_all_records())
    assert reader.archive_name()
    assert reader.has_record("data.pkl")
    with pytest.raises(RuntimeError, match="failed locating file data/7: file not found"):
        reader.get_record("data/7")
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        torch.PyTorchFileReader(io.BytesIO(b"no archive"))
