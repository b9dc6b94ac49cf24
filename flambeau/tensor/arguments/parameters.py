"""Public parameters of an operator, read off infer, formula or view, and calls taken apart by them.

Keeps     nothing is written twice: names, defaults and kinds are those of the operator's method.
          Numbers that change from call to call are no part of a call's key.
Touches   ops.define, number_rules; operands.py, when an argument is refused.
Not here  signatures found by such keys, and calling (tensor/binding.py)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from flambeau.base.dtypes import PYTHON_TYPES
from flambeau.base.promotion import INT_TO_FLOAT
from flambeau.ops.define import OPERAND_KINDS, Elementwise, Operator
from flambeau.ops.define import View as ViewOperator
from flambeau.tensor.number_rules import is_number, is_special, plain_number, wide_integer
from flambeau.tensor.tensor import Tensor

ABSENT: Final = object()
_INTEGERS: Final = range(-(2**63), 2**63)
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


def _operands() -> Any:
    """What says why arguments are refused; few programs need it."""
    from flambeau.tensor.arguments import operands

    return operands


class Call:
    """A call taken apart: operands by role, and the key of its signature."""

    __slots__ = ("key", "numbers", "tensors", "values")

    def __init__(
        self, key: tuple[Any, ...], tensors: list[Tensor], numbers: list[Any], values: list[Any]
    ) -> None:
        self.key = key
        self.tensors = tensors
        self.numbers = numbers
        self.values = values


class Parameters:
    """The parameters of one operator, and calls taken apart by them."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.name = operator.name
        self.parameters = parameters_of(operator)
        self.positions = {p.name: n for n, p in enumerate(self.parameters)}
        self.n_positional = sum(not p.is_keyword for p in self.parameters)
        self.has_operands = any(p.kind == "Operand" for p in self.parameters)
        self._types = {
            n: TYPES[p.annotation] for n, p in enumerate(self.parameters) if p.annotation in TYPES
        }

    def arranged(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Values of all parameters in order, defaults filled in."""
        if len(arguments) > self.n_positional:
            arguments, named = in_todays_order(self.name, arguments, named, self.n_positional)
        count = len(arguments)
        if count > self.n_positional:
            raise _operands().too_many(self, arguments, named)
        values = list(arguments)
        rest = in_own_words(named, self.positions) if named else named
        for parameter in self.parameters[count:]:
            default = parameter.default
            values.append(rest.pop(parameter.name, default) if rest else default)
        if rest:
            raise _operands().unknown(self, arguments, named, next(iter(rest)))
        for parameter, value in zip(self.parameters, values, strict=True):
            if value is ABSENT:
                raise _operands().missing(self, arguments, named, parameter.name)
        for place, kind in self._types.items():
            if values[place].__class__ is not kind:
                position = 0 if place >= count else place + 1
                values[place] = _typed(self.parameters[place], self.name, values[place], position)
        return values

    def taken_apart(self, values: list[Any]) -> Call:
        """Operands, run-time numbers and signature key of arranged values."""
        key: list[Any] = []
        tensors: list[Tensor] = []
        numbers: list[Any] = []
        for position, (parameter, value) in enumerate(zip(self.parameters, values, strict=True)):
            kind = parameter.kind
            if kind == "attribute":
                key.append(told_apart(hashable(value)))
            elif isinstance(value, Tensor) and kind != "Tensors":
                if "Number" in kind:
                    value = values[position] = value.item()
                    self._number(parameter, value, key, numbers)
                else:
                    tensors.append(value)
                    key.append(value._layout)
            elif kind == "Tensors":
                sequence = values[position] = self._sequence(position, value)
                tensors.extend(sequence)
                key.append(tuple([each._layout for each in sequence]))
            elif value is None and kind.startswith("Optional"):
                key.append(None)
            else:
                value = values[position] = self._plain_number(parameter, position, values)
                self._number(parameter, value, key, numbers)
        if not tensors and self.has_operands:
            return self.taken_apart(_operands().of_numbers(self, values))
        return Call(tuple(key), tensors, numbers, values)

    def _number(self, parameter: Parameter, value: Any, key: list[Any], numbers: list[Any]) -> None:
        if is_special(value, parameter.specials):
            key.append((type(value), value))
            return
        key.append(type(value))
        numbers += (value.real, value.imag) if type(value) is complex else (value,)

    def _plain_number(self, parameter: Parameter, position: int, values: list[Any]) -> Any:
        value = values[position]
        kind = type(value)
        if parameter.kind in ("Tensor", "OptionalTensor"):
            raise self.wrong_operand(position, values)
        if kind is int:
            if value in _INTEGERS:
                return value
            layouts = [each._layout for each in values if isinstance(each, Tensor)]
            promote = getattr(self.operator, "promote", None)
            return wide_integer(value, self.name, layouts, promote is INT_TO_FLOAT)
        if kind is float or kind is bool or kind is complex:
            return value
        if is_number(value):
            return plain_number(value)
        raise self.wrong_operand(position, values)

    def wrong_operand(self, position: int, values: list[Any]) -> TypeError:
        """torch's error for an operand of another type."""
        error: TypeError = _operands().wrong_operand(self, position, values)
        return error

    def _sequence(self, position: int, value: Any) -> tuple[Tensor, ...]:
        if not isinstance(value, (tuple, list)):
            raise _operands().wrong_sequence(self, position, value)
        for each in value:
            if not isinstance(each, Tensor):
                raise _operands().wrong_sequence(self, position, value)
        return tuple(value)


# Annotations of attributes that are bools, numbers or sequences of ints: what most of them are.
# Any other value would fail where the operator is lowered, in the middle of others' work.
TYPES: Final = {
    "bool": bool, "int": int, "int | None": int, "Sizes": int, "float": float,
    "float | None": float,
}  # fmt: skip


def _typed(parameter: Parameter, name: str, value: Any, position: int) -> Any:
    """An argument of the function `name` that has to be a bool, a number, or ints; torch's error
    where it is not. Position 0: it came by name."""
    kind = parameter.annotation
    if value is None and kind not in ("bool", "int", "float"):
        return None
    if kind.startswith("float") and hasattr(value, "__float__"):
        return value
    if kind == "Sizes" and hasattr(value, "__iter__") and not isinstance(value, str):
        if not isinstance(value, (tuple, list)) or all(map(_is_int, value)):
            return value
    elif kind != "bool" and _is_int(value):
        found: int = value.__index__()
        return found
    from flambeau.tensor.arguments.refusals import wrong_attribute

    raise wrong_attribute(name, parameter, value, position)


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def told_apart(value: Any) -> Any:
    """A hashable attribute as part of a key: 1.0 and True are not taken for 1."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is tuple:
        for each in value:
            if type(each) is not int:
                return tuple([told_apart(each) for each in value])
        return value
    return kind, value


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
