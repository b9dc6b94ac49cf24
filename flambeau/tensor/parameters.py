"""Public parameters of an operator, read off infer, formula or view.

Keeps     nothing is written twice: names, defaults and kinds are those of the operator's method.
Touches   ops.define.
Not here  arguments of a call (binding.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base.dtypes import PYTHON_TYPES
from flambeau.base.errors import helped
from flambeau.ops.define import OPERAND_KINDS, Elementwise, Operator
from flambeau.ops.define import View as ViewOperator
from flambeau.tensor.tensor import Tensor

ABSENT: Final = object()


class Parameter:
    """One parameter of an operator's public signature."""

    __slots__ = ("default", "is_keyword", "kind", "name", "specials")

    def __init__(
        self, name: str, kind: str, default: Any, is_keyword: bool, specials: tuple[float, ...]
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.is_keyword = is_keyword
        self.specials = specials


def role_of(kind: str) -> str:
    """What gradients are told of an operand of this kind."""
    if kind == "Tensors":
        return "tensors"
    return "number" if "Number" in kind else "tensor"


def parameters_of(operator: Operator) -> tuple[Parameter, ...]:
    """The public signature, read off infer, formula or view."""
    kind: Any = type(operator)
    if isinstance(operator, Elementwise) and kind.infer is Elementwise.infer:
        function, skipped = kind.formula, 2
    elif isinstance(operator, ViewOperator):
        function, skipped = kind.view, 1
    else:
        function, skipped = kind.infer, 1
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    with_defaults = reversed(names[: code.co_argcount])
    defaults = dict(zip(with_defaults, reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    made = []
    for position, name in enumerate(names):
        if position < skipped:
            continue
        annotation = str(function.__annotations__.get(name, "Tensor"))
        if annotation == "Layout":
            annotation = "Tensor"
        if annotation not in OPERAND_KINDS:
            annotation = "attribute"
        made.append(
            Parameter(
                name, annotation, defaults.get(name, ABSENT), position >= code.co_argcount,
                operator.specials.get(name, ()),
            )
        )  # fmt: skip
    return tuple(made)


# Operators that torch has one overload of, though they take a number beside a tensor.
_ONE_OVERLOAD: Final = frozenset(("add", "div", "mul", "sub"))
_OF_NUMBERS: Final = _ONE_OVERLOAD | {"floor_divide", "true_divide"}


def of_numbers(binding: Any, values: list[Any]) -> list[Any]:
    """The values of a call without a tensor, where torch makes one of a number."""
    if binding.name not in _OF_NUMBERS:
        raise wrong_type(binding, 0, values)
    from flambeau.tensor.creation import tensor

    return [tensor(values[0]), *values[1:]]


def wrong_type(binding: Any, position: int, values: list[Any]) -> TypeError:
    """torch's error for an operand of another type: where an operator has several overloads, with
    what all of them were given."""
    name, parameters = binding.name, binding.parameters
    parameter, value = parameters[position], values[position]
    operands = [each for each in parameters if each.kind in ("Operand", "OptionalOperand")]
    if operands and name not in _ONE_OVERLOAD:
        count = len(values)
        while count > position + 1 and values[count - 1] is parameters[count - 1].default:
            count -= 1
        given = ", ".join(
            "Tensor" if hasattr(each, "_layout") else type(each).__name__ for each in values[:count]
        )
        kinds = ", ".join(
            f"{'Tensor or Number' if each in operands else 'Tensor'} {each.name}"
            for each in parameters
            if each.kind != "attribute"
        )
        return TypeError(
            helped(
                f"{name}() received an invalid combination of arguments - got ({given}), but "
                "expected one of:",
                expected=f"({kinds})",
            )
        )
    wanted = "Number" if "Number" in parameter.kind else "Tensor"
    return TypeError(
        f"{name}(): argument '{parameter.name}' (position {position + 1}) must be {wanted}, not "
        f"{type(value).__name__}"
    )


def hashable(value: Any) -> Any:
    """An attribute as part of a key: lists become tuples, numpy's integers Python's."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if kind is type:
        return PYTHON_TYPES.get(value, value)
    if isinstance(value, (tuple, list)):
        return tuple([hashable(each) for each in value])
    if isinstance(value, Tensor):
        return value.item()
    if hasattr(value, "__index__") and not isinstance(value, int):
        return value.__index__()
    return value
