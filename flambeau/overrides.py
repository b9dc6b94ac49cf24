"""torch.overrides: objects that bring __torch_function__, asked for and called by libraries.

Keeps     torch's order: subclasses first, then from left to right.
Touches   tensor.arguments.taken_over.
Not here  flambeau's own functions, which hand over what they cannot do (tensor.arguments)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.arguments.taken_over import overloaded

__all__ = ["handle_torch_function", "has_torch_function", "is_tensor_like", "wrap_torch_function"]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments brings a __torch_function__ of its own.

    >>> import flambeau as torch
    >>> has_torch_function((torch.ones(2), 3))
    False
    """
    return bool(overloaded(relevant_args))


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first of the arguments that has an answer answers for `public_api`.

    Raises   TypeError: none has."""
    given = tuple(relevant_args)
    answer = taken_over.handle(public_api, given, args, kwargs)
    if answer is not taken_over.NOBODY:
        return answer
    types = [type(each) for each in overloaded(given)]
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {types}"
    )


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Decorator: dispatcher(*args) names the arguments that may take the call over."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(called, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return called

    return wrapped


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or brings a __torch_function__."""
    return isinstance(inp, Tensor) or getattr(inp, "__torch_function__", None) is not None


__getattr__ = module_getattr(__name__)
