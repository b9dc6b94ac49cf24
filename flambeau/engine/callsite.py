"""Where a user's line is: the first code object outside flambeau and its instruction offset.

Keeps     never a frame, which would keep the user's locals alive.
Touches   sys, nothing of flambeau.
Not here  what the place is used for (errors of version checks, debug.explain)."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Final

Site = tuple[CodeType, int]

_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_getframe: Final = sys._getframe
# Whether a code object is flambeau's own, learnt once each.
INTERNAL: dict[CodeType, bool] = {}


def site() -> Site | None:
    """Code and instruction offset of the caller's caller, or of the first frame outside."""
    frame: FrameType | None = _getframe(2)
    while frame is not None:
        code = frame.f_code
        internal = INTERNAL.get(code)
        if internal is None:
            internal = _learn(code)
        if not internal:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return None


def is_internal(code: CodeType) -> bool:
    """Whether a code object is flambeau's own."""
    internal = INTERNAL.get(code)
    return _learn(code) if internal is None else internal


def _learn(code: CodeType) -> bool:
    if len(INTERNAL) > 50_000:
        INTERNAL.clear()
    internal = code.co_filename.startswith(_FOLDER)
    INTERNAL[code] = internal
    return internal


def describe(place: Site | None) -> str:
    """'file:line in function' of a site.

    >>> describe(None)
    'an unknown line'
    """
    if place is None:
        return "an unknown line"
    code, offset = place
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
            break
    return f"{code.co_filename}:{line} in {code.co_name}"
