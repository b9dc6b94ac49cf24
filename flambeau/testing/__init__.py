"""torch.testing: comparing values within tolerances, and tensors to test with.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_WHERE = {"assert_close": "compare", "make_tensor": "make"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise missing_name(__name__, name, __dir__())
    found = getattr(import_module(f"flambeau.testing.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
