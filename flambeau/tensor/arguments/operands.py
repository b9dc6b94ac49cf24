"""torch's errors for arguments that one operator cannot take, by its own parameters.

Keeps     an operator that torch has overloads of says what all arguments were; any other, which of
          them is wrong.
Touches   parameters.py, refusals.py (the words that both share).
Not here  functions whose forms are written out (refusals.py), which are refused by those first."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.tensor.arguments import named_type
from flambeau.tensor.arguments.parameters import NUMBERS_AS_TENSORS, Parameter, Parameters
from flambeau.tensor.arguments.refusals import counted, invalid_combination, wrong_argument


def _has_overloads(callee: Parameters) -> bool:
    """Whether torch has one overload for a tensor and another for a number in its place."""
    return any(each.kind in ("Operand", "OptionalOperand") for each in callee.parameters)


def _wrong_call(
    callee: Parameters, arguments: tuple[Any, ...], named: dict[str, Any], words: str
) -> TypeError:
    expected = ", ".join(each.name for each in callee.parameters)
    if _has_overloads(callee):
        return invalid_combination(callee.name, arguments, named, expected)
    return TypeError(helped(f"{callee.name}() {words}", expected=expected))


def too_many(callee: Parameters, arguments: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """torch's error for more arguments by position than there are such parameters."""
    most = callee.n_positional
    plural = "" if most == 1 else "s"
    words = f"takes {most} positional argument{plural} but {len(arguments)} were given"
    return _wrong_call(callee, arguments, named, words)


def unknown(
    callee: Parameters, arguments: tuple[Any, ...], named: dict[str, Any], name: str
) -> TypeError:
    """torch's error for an argument by a name that no parameter has, or one given twice."""
    if name in callee.positions:
        words = f"got multiple values for argument '{name}'"
    else:
        words = f"got an unexpected keyword argument '{name}'"
    return _wrong_call(callee, arguments, named, words)


def missing(
    callee: Parameters, arguments: tuple[Any, ...], named: dict[str, Any], name: str
) -> TypeError:
    """torch's error for a parameter without a default that was given nothing."""
    words = f'missing 1 required positional arguments: "{name}"'
    return _wrong_call(callee, arguments, named, words)


def wrong_operand(callee: Parameters, position: int, values: list[Any]) -> TypeError:
    """torch's error for an operand of another type."""
    name, parameters = callee.name, callee.parameters
    if _has_overloads(callee):
        count = len(values)
        while count > position + 1 and values[count - 1] is parameters[count - 1].default:
            count -= 1
        kinds = ", ".join(
            f"{_takes(each)} {each.name}" for each in parameters if each.kind != "attribute"
        )
        return invalid_combination(name, values[:count], {}, f"({kinds})")
    parameter = parameters[position]
    wanted = "Number" if "Number" in parameter.kind else "Tensor"
    place = 0 if parameter.is_keyword else position + 1
    return counted(
        lambda at: TypeError(wrong_argument(name, parameter.name, wanted, values[position], at)),
        place,
    )


def _takes(parameter: Parameter) -> str:
    return "Tensor or Number" if parameter.kind in ("Operand", "OptionalOperand") else "Tensor"


def wrong_sequence(callee: Parameters, position: int, value: Any) -> TypeError:
    """torch's error for what is no sequence of tensors."""
    if isinstance(value, (tuple, list)):
        for number, each in enumerate(value):
            if named_type(each) != "Tensor":
                return TypeError(
                    f"expected Tensor as element {number} in argument {position}, but got "
                    f"{type(each).__name__}"
                )
    name = callee.parameters[position].name
    return TypeError(wrong_argument(callee.name, name, "tuple of Tensors", value, position + 1))


def of_numbers(callee: Parameters, values: list[Any]) -> list[Any]:
    """The values of a call without a tensor, where torch makes one of a number.

    Raises   TypeError: torch takes no number for a tensor there."""
    if callee.name not in NUMBERS_AS_TENSORS:
        raise wrong_operand(callee, 0, values)
    from flambeau.tensor.creation import tensor

    return [tensor(values[0]), *values[1:]]
