"""Copying twins of views: view_copy, narrow_copy, split_copy ...

Keeps     a twin is its view, copied into memory of its own without gaps, for every argument alike.
Touches   functions, members, slices.
Not here  the views (ops.views)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.tensor import functions
from flambeau.tensor.inplace import stored
from flambeau.tensor.public import members
from flambeau.tensor.tensor import Tensor

NAMES: Final = (
    "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice",
    "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze",
    "view", "view_as_complex", "view_as_real",
)  # fmt: skip


def _view(name: str) -> Callable[..., Any]:
    if name in ("as_strided", "view"):
        return getattr(members, name)
    if name == "split_with_sizes":
        return lambda input, split_sizes, dim=0: functions.split(input, list(split_sizes), dim)
    if name == "detach":  # torch's twin of it keeps the history
        return functions.alias
    return getattr(functions, name)


def _twin(name: str) -> Callable[..., Any]:
    def twin(input: Tensor, *arguments: Any, out: Any = None, **named: Any) -> Any:
        seen = _view(name)(input, *arguments, **named)
        if isinstance(seen, (tuple, list)):
            return stored(tuple([functions.contiguous_copy(each) for each in seen]), out)
        return stored(functions.contiguous_copy(seen), out)

    twin.__name__ = twin.__qualname__ = f"{name}_copy"
    twin.__doc__ = f"{name}, copied into memory of its own."
    return twin


globals().update({f"{name}_copy": _twin(name) for name in NAMES})
