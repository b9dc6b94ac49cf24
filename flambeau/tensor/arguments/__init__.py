"""What users hand in: numbers in nested sequences, arguments of calls that may fit no form.

Keeps     one spelling of a type for every message.
Touches   refusals.py, when a call has failed: what it needs is imported then.
Not here  names of dtypes (base/promotion.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flambeau.base.dtypes import dtype
from flambeau.tensor.tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGES: Final = ("numpy", "torch")
# Functions that programs may hold although the name gives another by now, by name.
EARLIER: Final[dict[str, list[Any]]] = {}


def named_type(value: Any) -> str:
    """Tensor, int, list, numpy.ndarray, torch.dtype ..."""
    if isinstance(value, Tensor):
        return "Tensor"
    kind = type(value)
    if kind is dtype:
        return "torch.dtype"
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ in _PACKAGES else kind.__name__


def refused(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any], is_method: bool = False
) -> TypeError:
    """torch's error for a call that no form fits."""
    from flambeau.tensor.arguments import refusals

    found = refusals.refusal(name, arguments, named, is_method)
    return found or TypeError(f"{name}(): invalid arguments")


def refusing(function: Callable[..., Any], name: str, is_method: bool) -> Callable[..., Any]:
    """The function, whose failed calls are refused as torch does where it is the arguments."""
    if getattr(function, "refuses", False):
        return function
    function = getattr(function, "over", function)

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception:
            from flambeau.tensor.arguments import refusals

            return refusals.answered(name, is_method, arguments, named)

    called.over = function  # type: ignore[attr-defined]
    return called


def refuses(name: str) -> Callable[[_Function], _Function]:
    """`refusing` as a decorator of functions that are written out."""
    return lambda function: refusing(function, name, False)  # type: ignore[return-value]
