"""torch.jit.annotations: the names of types that files for scripting import from here.

Keeps     Python's own, and what annotations are subscripted with.
Touches   nothing.
Not here  scripting: there is none."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - torch's names

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4",
    "BroadcastingList5", "BroadcastingList6", "Dict", "List", "Optional", "Tuple", "Union",
]  # fmt: skip


class _BroadcastingList:
    """In a script, a list of which one number may stand for all; subscripted, no type."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
