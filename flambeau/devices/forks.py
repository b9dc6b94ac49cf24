"""What is done around a fork, so that a child inherits no lock of a thread that it does not have.

Keeps     what was registered last comes first before a fork and last after it; what is registered
          while a fork is being prepared (its flush may be the first that needs a room) is
          prepared as well, so that nothing is undone after the fork that was not done before.
Touches   os.register_at_fork, once.
Not here  what each room does: threads' locks and what a child forgets (engine, devices, random)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

_rooms: Final[list[tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]]] = []
# How many of them the thread that forks has prepared; another thread may be preparing its own.
_prepared: Final = threading.local()


def at_fork(
    before: Callable[[], Any],
    after_in_parent: Callable[[], Any],
    after_in_child: Callable[[], Any],
) -> None:
    """Like os.register_at_fork, for callers that may register in the middle of a fork."""
    _rooms.append((before, after_in_parent, after_in_child))


def _before() -> None:
    n_prepared = 0
    while (known := len(_rooms)) > n_prepared:
        for before, _, _ in reversed(_rooms[n_prepared:known]):
            before()
        n_prepared = known
    _prepared.count = n_prepared


def _after_in_parent() -> None:
    for _, after, _ in _rooms[: _prepared.count]:
        after()


def _after_in_child() -> None:
    for _, _, after in _rooms[: _prepared.count]:
        after()


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
