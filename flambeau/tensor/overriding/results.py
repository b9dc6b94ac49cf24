"""What Tensor's own __torch_function__ does: results of a subclass are of that subclass.

Keeps     what is stored on a tensor (.grad) is given as it is; what is not a tensor, too.
Touches   tensor.arguments.taken_over, functions.
Not here  who is asked (arguments/taken_over.py)."""

from __future__ import annotations

from functools import cache
from typing import Any

from flambeau.tensor import functions
from flambeau.tensor.arguments.taken_over import Undisturbed
from flambeau.tensor.tensor import Tensor, as_class


def of_subclass(kind: type, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The function's result for the arguments, its tensors as instances of `kind`.

    Returns  NotImplemented where an argument's type is no base of `kind`."""
    for each in types:
        if not issubclass(kind, each):
            return NotImplemented
    with Undisturbed():
        found = func(*args, **kwargs)
        return found if func in unwrapped() else converted(found, kind)


@cache
def unwrapped() -> set[Any]:
    """Functions whose results keep their class: they give what is stored on a tensor."""
    owner: Any = Tensor
    return {owner._base.__get__, owner.grad.__get__}


def converted(found: Any, kind: Any) -> Any:
    """A result, its tensors as instances of a class."""
    if kind is Tensor:
        return found
    if isinstance(found, Tensor):
        return found if isinstance(found, kind) else as_subclass(found, kind)
    if isinstance(found, (tuple, list)):
        parts = [converted(each, kind) for each in found]
        return _gathered(type(found), parts)
    return found


def _gathered(kind: Any, parts: list[Any]) -> Any:
    """A tuple of named parts, another tuple or a list."""
    return kind._make(parts) if hasattr(kind, "_make") else kind(parts)


def as_subclass(tensor: Tensor, kind: Any) -> Any:
    """The same elements with the same history, as an instance of a subclass."""
    if type(tensor) is Tensor:
        return as_class(functions.alias(tensor), kind)
    with Undisturbed():
        return as_class(functions.alias(tensor), kind)
