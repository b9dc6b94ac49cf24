"""Printing by the names that libraries import."""

import flambeau as torch
from flambeau._tensor_str import PRINT_OPTS, _add_suffixes, _str, _str_intern, _tensor_str


def test_text_is_that_of_repr():
    x = torch.arange(4.0).reshape(2, 2)
    assert _tensor_str(x, 7) == "[[0., 1.],\n        [2., 3.]]"
    assert _str(x) == repr(x)
    assert _str_intern(x, tensor_contents="...") == "tensor(...)"
    assert PRINT_OPTS.threshold == torch.get_printoptions()["threshold"]
    assert _add_suffixes("f(1", ["a=1", "b=2"], 2, False) == "f(1, a=1, b=2)"
    assert _add_suffixes("f(1", ["a=1", "b=2"], 2, True) == "f(1,\n  a=1, b=2)"
