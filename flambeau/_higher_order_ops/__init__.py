"""torch._higher_order_ops: functions of functions, as programs import them.

Keeps     names are found when used.
Touches   the file beside it.
Not here  control flow of traced programs: programs are run."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {"associative_scan": "associative_scan"}

__getattr__, __dir__ = lazy_names(__name__, _WHERE, ("associative_scan",))
