"""Calls that an argument takes over by its __torch_function__.

Keeps     torch's order: subclasses first, then from left to right; asked only when a call has
          failed, so that calls of tensors pay nothing.
Touches   sys.modules, for the function that the program knows.
Not here  torch.overrides' own names (overrides.py)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from flambeau.tensor.arguments import EARLIER
from flambeau.tensor.tensor import Tensor

NOBODY: Final = object()


def overloaded(arguments: Iterable[Any]) -> list[Any]:
    """The first of each type with a __torch_function__, subclasses before their bases."""
    found: list[Any] = []
    for each in arguments:
        kind = type(each)
        if getattr(kind, "__torch_function__", None) is None or kind in map(type, found):
            continue
        place = next((n for n, old in enumerate(found) if issubclass(kind, type(old))), len(found))
        found.insert(place, each)
    return found


def handle(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """What the first of the arguments that has an answer answers; NOBODY where none has."""
    asked = overloaded(relevant_args)
    types = tuple(map(type, asked))
    for each in asked:
        answer = each.__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    return NOBODY


def _known(name: str, is_method: bool) -> list[Any]:
    """The functions a program may know by this name: the present one last."""
    if is_method:
        return [*EARLIER.get(f"Tensor.{name}", []), getattr(Tensor, name)]
    owners = (sys.modules.get("flambeau"), sys.modules.get("flambeau.nn.functional"))
    now = [getattr(each, name) for each in owners if hasattr(each, name)]
    return [*EARLIER.get(name, []), *now[:1]]


def _foreign(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Arguments that are no tensors and may take the call over."""
    relevant: list[Any] = []
    for each in (*arguments, *named.values()):
        relevant += each if isinstance(each, (list, tuple)) else [each]
    return overloaded(each for each in relevant if not isinstance(each, Tensor))


def handing_over(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose failed calls are handed over under its own name."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception:
            asked = _foreign(arguments, named)
            found = handle(called, asked, arguments, named) if asked else NOBODY
            if found is NOBODY:
                raise
            return found

    return called


def answer(name: str, is_method: bool, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What takes the failed call over answers; NOBODY where nothing does.

    Raises   TypeError: there is one that might, but it does not know the function."""
    asked = _foreign(arguments, named)
    if not asked:
        return NOBODY
    found: Any = NOBODY
    told: Exception | None = None
    for function in _known(name, is_method):
        try:
            found = handle(function, asked, arguments, named)
        except NotImplementedError as error:  # some say by this that they do not know it
            told = error
        if found is not NOBODY:
            return found
    if told is not None:
        raise told
    where = f"torch.Tensor.{name}" if is_method else f"torch.{name}"
    raise TypeError(
        f"no implementation found for '{where}' on types that implement __torch_function__: "
        f"{[type(each) for each in asked]}"
    )
