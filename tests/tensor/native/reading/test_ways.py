"""NumPy's C interface is used once it was seen to be the right one."""

import ctypes

import numpy as np
import pytest

import flambeau as torch
from flambeau.tensor import conversion
from flambeau.tensor.native import library
from flambeau.tensor.native.reading import ways
from flambeau.tensor.native.tables import TABLE

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")


def test_this_numpy_is_right():
    kind, new, base = ways._interface()
    assert kind == id(np.ndarray)
    assert new > 1 < base


def test_another_type_is_refused():
    assert not ways._is_right(id(list), 0, 0)


def test_without_the_interface_python_makes_the_arrays(monkeypatch):
    native = library.library()
    table, place = native.table, TABLE["new_array"] // 8
    before = table[place]
    table[place] = ways._NONE
    try:
        numpy = ways.numpy(conversion.numpy)
        x = torch.ones(3, 77)
        for _ in range(3):
            assert numpy(x).shape == (3, 77)
        assert ways.NUMPY not in x._layout.memo
    finally:
        table[place] = before


def test_words_of_an_array():
    x = torch.ones(2, 3)
    words = (ctypes.c_int64 * 7).from_buffer_copy(ways._array_words(x._layout, np.dtype("f4")))
    assert list(words) == [id(np.dtype("f4")), 2, 4, 2, 3, 12, 4]
