"""Names of types by the path that files for scripting import them from."""

import typing

from flambeau.jit import annotations


def test_names_are_pythons():
    for name in annotations.__all__:
        assert getattr(annotations, name) is getattr(typing, name)
