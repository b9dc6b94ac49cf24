"""Public parameters of an operator, read off infer, formula or view.

Keeps     nothing is written twice: names, defaults and kinds are those of the operator's method.
Touches   ops.define.
Not here  arguments of a call (binding.py)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from flambeau.base.dtypes import PYTHON_TYPES
from flambeau.base.errors import helped
from flambeau.base.shapes import not_an_int
from flambeau.ops.define import OPERAND_KINDS, Elementwise, Operator
from flambeau.ops.define import View as ViewOperator
from flambeau.tensor.arguments import named_type
from flambeau.tensor.tensor import Tensor

ABSENT: Final = object()
# NumPy's names of parameters, which torch takes too, and one its method has.
NUMPY_NAMES: Final = {
    "axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other",
    "split_size": "split_size_or_sections",
}  # fmt: skip
# Numbers that come by name now and once stood before the last tensors: add(input, alpha, other),
# addmm(beta, input, alpha, mat1, mat2).
_ONCE_BETWEEN: Final = {
    "add": ("alpha",), "sub": ("alpha",), "addcdiv": ("value",), "addcmul": ("value",),
    **dict.fromkeys(("addbmm", "addmm", "addmv", "addr", "baddbmm"), ("beta", "alpha")),
}  # fmt: skip


def in_own_words(named: dict[str, Any], own: Container[str]) -> dict[str, Any]:
    """Arguments by name, NumPy's names replaced where the function has no such parameter."""
    if not NUMPY_NAMES.keys() & named.keys():
        return dict(named)
    return {
        NUMPY_NAMES[name] if name not in own and NUMPY_NAMES.get(name) in own else name: value
        for name, value in named.items()
    }


def in_todays_order(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any], n_positional: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with more of them than the operator takes by position: numbers that
    torch's older signatures have among the tensors go by name, dims of squeeze one by one."""
    if name == "squeeze" and not named:
        return (arguments[0], arguments[1:]), named
    tensors = tuple([each for each in arguments if isinstance(each, Tensor)])
    numbers = [each for each in arguments if not isinstance(each, Tensor)]
    names = _ONCE_BETWEEN.get(name, ())
    if not 0 < len(numbers) <= len(names) or len(tensors) != n_positional:
        return arguments, named
    return tensors, {**dict(zip(names, numbers, strict=False)), **named}


class Parameter:
    """One parameter of an operator's public signature."""

    __slots__ = ("annotation", "default", "is_keyword", "kind", "name", "specials")

    def __init__(
        self, name: str, annotation: str, default: Any, is_keyword: bool,
        specials: tuple[float, ...],
    ) -> None:  # fmt: skip
        self.name = name
        self.annotation = annotation
        self.kind = annotation if annotation in OPERAND_KINDS else "attribute"
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
        made.append(
            Parameter(
                name, annotation, defaults.get(name, ABSENT), position >= code.co_argcount,
                operator.specials.get(name, ()),
            )
        )  # fmt: skip
    return tuple(made)


# Operators that torch has one overload of, though they take a number beside a tensor.
_OF_NUMBERS: Final = frozenset(("add", "div", "floor_divide", "mul", "sub", "true_divide"))
_ONE_OVERLOAD: Final = frozenset(("add", "copy", "div", "mul", "sub"))


def wrong_call(
    binding: Any, arguments: tuple[Any, ...], named: dict[str, Any], words: str
) -> TypeError:
    """torch's error for a call that no signature fits: where an operator has several, what all of
    them were given; else `words`."""
    operands = [each for each in binding.parameters if each.kind in ("Operand", "OptionalOperand")]
    if not operands or binding.name in _ONE_OVERLOAD:
        return TypeError(helped(words, expected=", ".join(p.name for p in binding.parameters)))
    kinds = [named_type(each) for each in arguments]
    kinds += [f"{name}={named_type(each)}" for name, each in named.items()]
    return TypeError(
        helped(
            f"{binding.name}() received an invalid combination of arguments - got "
            f"({', '.join(kinds)}), but expected one of:",
            expected=", ".join(p.name for p in binding.parameters),
        )
    )


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
        given = ", ".join(map(named_type, values[:count]))
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
    where = "" if parameter.is_keyword else f" (position {position + 1})"
    return TypeError(
        f"{name}(): argument '{parameter.name}'{where} must be {wanted}, not {named_type(value)}"
    )


# Annotations of attributes that are bools, ints or sequences of ints: what most of them are.
TYPES: Final = {"bool": bool, "int": int, "int | None": int, "Sizes": int}


def typed(binding: Any, position: int, value: Any, by_name: bool) -> Any:
    """An argument that has to be a bool, an int, or ints; torch's error where it is not."""
    annotation = binding.parameters[position].annotation
    if annotation == "bool":
        raise wrong_attribute(binding, position, value, by_name, "bool")
    if value is None and annotation != "int":
        return None
    if annotation == "Sizes" and (isinstance(value, (tuple, list)) or hasattr(value, "__iter__")):
        if isinstance(value, (tuple, list)):
            _check_ints(binding, position, value, by_name)
        return value
    if hasattr(value, "__index__") and not isinstance(value, bool):
        found: int = value.__index__()
        return found
    wanted = "tuple of ints" if annotation == "Sizes" else "int"
    raise wrong_attribute(binding, position, value, by_name, wanted)


def _check_ints(binding: Any, position: int, values: Any, by_name: bool) -> None:
    """Refuse a sequence with something else than ints in it."""
    for place, each in enumerate(values):
        if hasattr(each, "__index__") and not isinstance(each, bool):
            continue
        name, at = binding.parameters[position].name, 0 if by_name else position + 1
        raise not_an_int(binding.name, name, at, place, named_type(each))


def wrong_attribute(
    binding: Any, position: int, value: Any, by_name: bool, wanted: str
) -> TypeError:
    """torch's error for an argument of another type than its parameter's only one."""
    where = "" if by_name else f" (position {position + 1})"
    return TypeError(
        f"{binding.name}(): argument '{binding.parameters[position].name}'{where} must be {wanted},"
        f" not {named_type(value)}"
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
