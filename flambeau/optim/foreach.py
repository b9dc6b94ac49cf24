"""torch._foreach_*: one method of every tensor of a list, as optimizers call it.

Keeps     each tensor is computed by the method of its own: fusion, not a list, makes loops few.
Touches   Tensor's methods.
Not here  optimizers: these do without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.base.errors import helped
from flambeau.tensor.tensor import Tensor

_OF_ONE = (
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p "
    "log2 max neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero"
).split()
_OF_TWO = "add clamp_max clamp_min copy div maximum minimum mul norm pow sub".split()
_OF_THREE = "addcdiv addcmul lerp".split()
_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_ONLY_NEW = {"clone", "max", "norm"}
_ONLY_IN_PLACE = {"copy", "zero"}


def named(name: str) -> Callable[..., Any] | None:
    """The function behind a name such as `_foreach_add_`, or None.

    >>> import flambeau as torch
    >>> torch._foreach_add([torch.zeros(2), torch.ones(1)], 1)
    (tensor([1., 1.]), tensor([2.]))
    """
    method = name.removeprefix("_foreach_")
    in_place = method.endswith("_")
    stem = method.removesuffix("_")
    if stem not in (*_OF_ONE, *_OF_TWO, *_OF_THREE):
        return None
    if stem in (_ONLY_NEW if in_place else _ONLY_IN_PLACE):
        return None

    def function(*arguments: Any, **options: Any) -> Any:
        if name == "_foreach_pow" and not isinstance(arguments[0], (list, tuple)):
            base, exponents = arguments  # a number to the power of each
            return tuple(base**each for each in exponents)
        tensors, *others = _operands(name, stem, arguments, options)
        rows = [_for_each(other, len(tensors)) for other in others]
        found = [
            _applied(stem, in_place, tensor, [row[n] for row in rows], options)
            for n, tensor in enumerate(tensors)
        ]
        return tensors if in_place else tuple(found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Tensor.{method} of every tensor of a list."
    return function


def _operands(
    name: str, stem: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> list[Any]:
    given = list(arguments)
    if not given and "self" in options:
        given = [options.pop("self")]
    names = ("other", "scalar", "exponent", "weight", "value", "scalars")
    given += [options.pop(each) for each in names if each in options and each != "value"]
    tensors = given[0] if given else None
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for place, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(each).__name__}"
            )
    if stem in ("addcdiv", "addcmul"):
        given.append(given.pop() if len(given) == 4 else options.pop("value", 1))
    return given


def _for_each(other: Any, count: int) -> Sequence[Any]:
    """An operand of each tensor: its own, or the one of all."""
    if isinstance(other, (list, tuple)):
        if len(other) != count:
            first = (
                f"Tensor lists must have the same number of tensors, got {count} and {len(other)}"
                if other and isinstance(other[0], Tensor)
                else "Tensor list must have same number of elements as scalar list."
            )
            raise RuntimeError(
                helped(first, given=f"lists of {count} and {len(other)}",
                       fix="one operand for each tensor, or a number for all")
            )  # fmt: skip
        return other
    if isinstance(other, Tensor) and other.ndim == 1 and other.numel() == count > 1:
        return list(other.tolist())  # numbers, one for each, as addcmul takes them
    return [other] * count


def _applied(
    stem: str, in_place: bool, tensor: Tensor, others: list[Any], options: dict[str, Any]
) -> Any:
    if stem in _NUMBERS and not isinstance(others[0], Tensor):
        stem = _NUMBERS[stem]
    if stem == "norm":
        return tensor.norm(*(others or [options.get("ord", 2)]), dtype=options.get("dtype"))
    method = getattr(tensor, stem + "_" * in_place)
    if stem in ("addcdiv", "addcmul"):
        return method(*others[:2], value=others[2])
    return method(*others, **options)
