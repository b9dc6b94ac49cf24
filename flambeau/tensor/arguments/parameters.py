"""Public parameters of an operator, read off infer, formula or view.

Keeps     nothing is written twice: names, defaults and kinds are those of the operator's method.
Touches   ops.define; operands.py, when an argument is refused.
Not here  putting a call's arguments to them (tensor/binding.py)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from flambeau.base.dtypes import PYTHON_TYPES
from flambeau.ops.define import OPERAND_KINDS, Elementwise, Operator
from flambeau.ops.define import View as ViewOperator
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
# Operators, and the functions of their names, that take Python's numbers for tensors.
NUMBERS_AS_TENSORS: Final = frozenset(
    ("add", "copy", "div", "floor_divide", "mul", "sub", "true_divide")
)


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


# Annotations of attributes that are bools, ints or sequences of ints: what most of them are.
TYPES: Final = {"bool": bool, "int": int, "int | None": int, "Sizes": int}


def typed(binding: Any, position: int, value: Any, by_name: bool) -> Any:
    """An argument that has to be a bool, an int, or ints; torch's error where it is not."""
    parameter = binding.parameters[position]
    kind = parameter.annotation
    if value is None and kind not in ("bool", "int"):
        return None
    if kind == "Sizes" and (isinstance(value, (tuple, list)) or hasattr(value, "__iter__")):
        if not isinstance(value, (tuple, list)) or all(map(_is_int, value)):
            return value
    elif kind != "bool" and _is_int(value):
        found: int = value.__index__()
        return found
    from flambeau.tensor.arguments.refusals import wrong_attribute

    raise wrong_attribute(binding.name, parameter, value, 0 if by_name else position + 1)


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


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
