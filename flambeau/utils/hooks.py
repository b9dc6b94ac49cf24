"""torch.utils.hooks: the handle of a hook.

Keeps     removing twice is harmless; the table of hooks is not kept alive.
Touches   gradients.hooks, whose handles are of the same class.
Not here  calling hooks (nn.modules.hooks, gradients.hooks)."""

from __future__ import annotations

from typing import Any

from flambeau.gradients.hooks import RemovableHandle

__all__ = ["RemovableHandle", "registered"]


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
