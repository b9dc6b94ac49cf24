"""Functions as programs know them: under their public names, with calls that may be taken over.

Keeps     a name gives one function as long as the process lives; factories ask for modes from the
          first mode on, and cost nothing extra before.
Touches   tensor.arguments.taken_over, the modules that programs see.
Not here  operators' own functions (arguments.refusing)."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any, Final

from flambeau.tensor import functions
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.native import callables, library, types
from flambeau.tensor.overriding.names import FACTORIES, SILENT

_IS_WATCHED: Final[list[bool]] = []


def served(found: Any, name: str, room: str = "torch") -> Any:
    """What a room offers under a public name: a function asks who takes its calls over."""
    if not isinstance(found, FunctionType) or (room == "torch" and name in SILENT):
        return found
    if room == "torch" and name in FACTORIES:
        return Factory(found, f"torch.{name}") if _IS_WATCHED else found
    public = f"torch{room.removeprefix('torch').removeprefix('flambeau')}.{name}"
    asking = found if hasattr(found, "public") else taken_over.overridable(found, public)
    made: Any = callables.guard(asking)
    if isinstance(made, FunctionType):
        if library.is_awaited():
            _FOR_NOW[public] = made
    else:
        types.succeeds(made, public)
    return made


# What is served until the native recorder comes, by public name.
_FOR_NOW: Final[dict[str, Any]] = {}


def _renew() -> None:
    """Let the next use of a name find the native callable."""
    types.EARLIER.update(_FOR_NOW)
    functions.forget(_FOR_NOW.values())
    _FOR_NOW.clear()


library.when_made(_renew)


class Factory:
    """A function that modes alone take over. It equals the function that it was before."""

    def __init__(self, function: FunctionType, public: str) -> None:
        self.__wrapped__ = function
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.public = public

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        found = taken_over.dispatched(self, self.public, (), arguments, named)
        return self.__wrapped__(*arguments, **named) if found is taken_over.NOBODY else found

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"


def watch() -> None:
    """Let modes see functions that make tensors; once is enough."""
    if _IS_WATCHED:
        return
    _IS_WATCHED.append(True)
    seen = vars(sys.modules["flambeau"])
    for name in FACTORIES & seen.keys():
        seen[name] = served(seen[name], name)
