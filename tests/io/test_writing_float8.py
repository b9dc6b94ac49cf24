"""Dtypes without a storage class of their own in files: views share memory, PyTorch's form."""

import io

import pytest

import flambeau as torch
from flambeau.base import dtypes


@pytest.mark.parametrize("of", [*dtypes.EIGHT_BITS, *dtypes.WIDE_UNSIGNED])
def test_saved_and_loaded(of):
    whole = torch.tensor([[0.3, 1.75, 3.0], [1.0, 2.0, 100.0]]).to(of)
    file = io.BytesIO()
    torch.save({"whole": whole, "row": whole[1:], "turned": whole.t()}, file)
    assert b"_rebuild_tensor_v3" in file.getvalue()
    file.seek(0)
    found = torch.load(file)
    assert found["whole"].dtype is of
    assert found["whole"].float().tolist() == whole.float().tolist()
    assert found["turned"].stride() == (1, 3)
    found["whole"].zero_()
    assert found["row"].float().tolist() == [[0.0, 0.0, 0.0]]
