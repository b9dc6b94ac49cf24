"""torch.utils.dlpack: memory is shared with other libraries."""

import numpy as np

import flambeau as torch
from flambeau.utils import dlpack


def test_shares_memory_with_an_array():
    array = np.zeros(3, dtype=np.float32)
    tensor = dlpack.from_dlpack(array)
    array[1] = 2.0
    assert tensor.tolist() == [0.0, 2.0, 0.0]
    assert torch.utils.dlpack is dlpack


def test_capsule():
    tensor = torch.ones(2)
    capsule = dlpack.to_dlpack(tensor)
    assert type(capsule).__name__ == "PyCapsule"
    back = dlpack.from_dlpack(capsule)
    tensor[0] = 5.0
    assert back.tolist() == [5.0, 1.0]
