"""torch.utils.hooks: the handle of a hook.

Keeps     removing twice is harmless; the table of hooks is not kept alive.
Touches   nothing.
Not here  calling hooks (nn.modules.hooks, gradients.hooks)."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final, Self

_numbers: Final = itertools.count()


class RemovableHandle:
    """Takes a hook away again: `remove()`, or leaving a `with` block."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(_numbers)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else (
            () if extra_dict is None else (extra_dict,)
        )  # fmt: skip
        self.extra_dict_ref = tuple(weakref.ref(each) for each in extra)

    def remove(self) -> None:
        """Take the hook away."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None and self.id in table:
                del table[self.id]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def registered(
    table: Any, hook: Any, prepend: bool = False, *marks: tuple[Any, bool]
) -> RemovableHandle:
    """The handle of a hook put into a table, and into the tables of those it is marked as."""
    handle = RemovableHandle(table, extra_dict=[marked for marked, _ in marks])
    table[handle.id] = hook
    for marked, is_wanted in marks:
        if is_wanted:
            marked[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle
