"""Names of types by the path that files for scripting import them from."""

import typing
from importlib import import_module


def test_names_are_pythons():
    annotations = import_module("flambeau.jit.annotations")  # whose name is a feature's, too
    for name in annotations.__all__:
        if not name.startswith("Broadcasting"):
            assert getattr(annotations, name) is getattr(typing, name)
    assert annotations.BroadcastingList2[int] is None
