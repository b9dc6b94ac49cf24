"""item() and numpy() by native code are what Python's own are."""

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau.devices.cpu import memory
from flambeau.tensor import conversion
from flambeau.tensor.native import library

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
          "bool", "complex64")  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_items_of_every_dtype(name):
    x = torch.tensor([0, 1, 120], dtype=getattr(torch, name))
    for number in range(3):
        for _ in range(3):
            found, expected = x[number].item(), conversion.item(x[number])
            assert (found, type(found)) == (expected, type(expected))


def test_negative_numbers_and_extremes():
    for name, values in {
        "int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "uint8": (0, 255),
        "float64": (-0.0, 1e300), "float32": (float("-inf"), 2.0**-149),
    }.items():  # fmt: skip
        x = torch.tensor(values, dtype=getattr(torch, name))
        for _ in range(3):
            assert tuple(x[n].item() for n in range(2)) == values


def test_an_item_runs_what_it_waits_for():
    x = torch.ones(1)
    for number in range(6):
        assert (x * number).item() == number
        y = x * 2
        x += 1
        assert (y + x).item() == 4.0
        x -= 1


def test_errors_of_item():
    x = torch.ones(2)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
            x.item()
        with pytest.raises(TypeError):
            x.item(1)
        with pytest.raises(RuntimeError):
            torch.ones(0).item()


def test_arrays_share_the_memory():
    x = torch.zeros(2, 3)
    for _ in range(3):
        array = x.numpy()
        assert array.dtype == np.float32
        assert (array.shape, array.strides) == ((2, 3), (12, 4))
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous
        assert not array.flags.owndata
    array[1, 2] = 7
    assert x[1, 2].item() == 7.0
    x.add_(1)
    assert array[1, 2] == 8.0
    assert array[0, 0] == 1.0


def test_arrays_of_views():
    x = torch.arange(12).reshape(3, 4)
    for _ in range(3):
        assert x.t().numpy().tolist() == x.t().tolist()
        assert x[1:, ::2].numpy().tolist() == [[4, 6], [8, 10]]
        assert x.t().numpy().flags.f_contiguous
        assert (x * 2).t().numpy()[3, 2] == 22
        assert torch.ones(2, 0).numpy().shape == (2, 0)


def test_a_write_is_seen_by_the_next_operator_alone():
    """What an operator was recorded to read is what the memory held then."""
    for _ in range(4):
        x = torch.ones(4) * 3
        array = x.numpy()
        y = x + 1
        array[:] = 100
        z = x + 1
        assert y.tolist() == [4.0] * 4
        assert z.tolist() == [101.0] * 4


def test_memory_lives_as_long_as_its_arrays():
    x = torch.ones(1000)
    for _ in range(3):
        array = (x * 2).numpy()
    gc.collect()
    before = memory.STATS.current_bytes
    arrays = [(x * number).numpy() for number in range(20)]
    assert [array[5] for array in arrays] == list(range(20))
    assert memory.STATS.current_bytes - before == 20 * 4000
    del arrays
    assert memory.STATS.current_bytes == before
    assert array[999] == 2.0


def test_a_tensor_is_shared_only_while_an_array_is_there():
    x = torch.ones(3) * 2
    for _ in range(3):
        array = x.numpy()
        assert x._storage.external.is_shared()
        del array
        assert not x._storage.external.is_shared()
    other = x.__array__()
    assert x._storage.external.is_shared()
    array = x.numpy()
    other[0] = 9
    assert array[0] == 9
    assert x.tolist() == [9.0, 2.0, 2.0]


def test_refusals_of_numpy():
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        torch.ones(2).numpy()
        with pytest.raises(RuntimeError, match="requires grad"):
            x.numpy()
        with pytest.raises(RuntimeError, match="requires grad"):
            x[:1].numpy()
        with pytest.raises(TypeError, match="BFloat16"):
            torch.ones(2, dtype=torch.bfloat16).numpy()
        assert x.numpy(force=True).tolist() == [1.0, 1.0]
        assert x.detach().numpy().tolist() == [1.0, 1.0]
