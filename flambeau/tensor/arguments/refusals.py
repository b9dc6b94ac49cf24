"""torch's errors for arguments that fit none of a function's forms.

Keeps     asked only when a call has failed: what torch's parser would not take is refused in its
          words, all other errors stay what they are; one that says more is kept as the cause.
Touches   signatures.py, parameters.py.
Not here  the functions themselves (closures.py, public/), operators without forms (operands.py)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base.devices import Device
from flambeau.base.dtypes import PYTHON_TYPES, dtype
from flambeau.base.errors import helped
from flambeau.base.shapes import not_an_int
from flambeau.engine.callsite import is_internal
from flambeau.tensor.arguments import named_type
from flambeau.tensor.arguments.parameters import NUMBERS_AS_TENSORS, NUMPY_NAMES, Parameter
from flambeau.tensor.arguments.python_data import is_numpy_scalar
from flambeau.tensor.tensor import Tensor

_CLASSES: Final = {
    "memory_format": "torch.memory_format", "layout": "torch.layout", "names": "tuple of names",
    "Generator": "torch.Generator",
}  # fmt: skip
_SAID: Final = {
    "ints": "tuple of ints", "ints1": "tuple of ints", "Tensors": "tuple of Tensors",
    "dtype": "torch.dtype", "device": "torch.device", **_CLASSES,
}  # fmt: skip


class FormParameter:
    """One parameter of a form."""

    __slots__ = ("by_name", "is_required", "kind", "name", "takes_none")

    def __init__(self, text: str, by_name: bool) -> None:
        kind, rest = text.split(" ")
        self.name, has_default, default = rest.partition("=")
        self.takes_none = kind.endswith("?") or default == "None"
        self.kind = kind.rstrip("?")
        self.by_name = by_name
        self.is_required = not has_default


class Form:
    """One form: parameters, and how many arguments it may have."""

    def __init__(self, text: str, is_method: bool) -> None:
        self.text = text
        self.parameters: list[FormParameter] = []
        by_name = False
        for each in text.split(", "):
            if each == "*":
                by_name = True
            elif not (
                is_method and each in ("Tensor input", "Tensor out=None", "Tensors out=None")
            ):
                self.parameters.append(FormParameter(each, by_name))
        self.n_required = sum(each.is_required for each in self.parameters)
        self.n_positional = sum(not each.by_name for each in self.parameters)


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim and value.dtype.category == 1
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (is_numpy_scalar(value) and hasattr(value, "__index__"))


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.ndim
    return isinstance(value, (int, float, complex)) or is_numpy_scalar(value)


def _fits(kind: str, value: Any, of_numbers: bool) -> bool:
    if kind == "Tensor":
        return isinstance(value, Tensor) or (of_numbers and _is_number(value))
    if kind == "Number":
        return _is_number(value)
    if kind == "int":
        return _is_int(value)
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    if kind == "device":
        return isinstance(value, (str, Device, int)) and not isinstance(value, bool)
    if kind in _CLASSES:
        return named_type(value) == _CLASSES[kind]
    if kind == "dtype":
        return isinstance(value, dtype) or (isinstance(value, type) and value in PYTHON_TYPES)
    if kind == "Tensors":
        return isinstance(value, (tuple, list))
    is_sequence = isinstance(value, (tuple, list)) and (not value or _is_int(value[0]))
    return is_sequence or (kind == "ints1" and _is_int(value) and not isinstance(value, Tensor))


def invalid_combination(
    name: str, arguments: Sequence[Any], named: dict[str, Any], expected: str
) -> TypeError:
    """torch's error where several forms were tried: the types of all arguments, those by name last
    first, as torch's table of them comes out."""
    given = [named_type(each) for each in arguments]
    given += [f"{key}={named_type(each)}" for key, each in reversed(named.items())]
    said = ", ".join(given) + (", " if named and not arguments else "")
    return TypeError(
        helped(
            f"{name}() received an invalid combination of arguments - got ({said}), but "
            "expected one of:",
            expected=expected,
        )
    )


def wrong_argument(name: str, parameter: str, wanted: str, value: Any, position: int) -> str:
    """torch's sentence about an argument of the wrong type; position 0: it came by name."""
    where = f" (position {position})" if position else ""
    return f"{name}(): argument '{parameter}'{where} must be {wanted}, not {named_type(value)}"


def wrong_attribute(name: str, parameter: Parameter, value: Any, position: int) -> TypeError:
    """torch's error for an argument of another type than a bool's, a number's or ints'."""
    return counted(lambda place: _wrong_attribute(name, parameter, value, place), position)


def counted(make: Callable[[int], TypeError], position: int) -> TypeError:
    """An error that names an argument's position; its `as_method` is the same of a method, which
    counts its arguments without the tensor."""
    error: Any = make(position)
    if position > 1:
        error.as_method = make(position - 1)
    return error


def _wrong_attribute(name: str, parameter: Parameter, value: Any, position: int) -> TypeError:
    if parameter.annotation != "Sizes":
        wanted = parameter.annotation.removesuffix(" | None")
        return TypeError(wrong_argument(name, parameter.name, wanted, value, position))
    if isinstance(value, (tuple, list)):
        for place, each in enumerate(value):
            if not hasattr(each, "__index__") or isinstance(each, bool):
                return not_an_int(name, parameter.name, position, place, named_type(each))
    return TypeError(wrong_argument(name, parameter.name, "tuple of ints", value, position))


def _wrong(name: str, parameter: FormParameter, value: Any, position: int) -> str:
    wanted = _SAID.get(parameter.kind, parameter.kind)
    if position and parameter.kind.startswith("ints") and isinstance(value, (tuple, list)):
        start = wrong_argument(name, parameter.name, wanted, value, position).rpartition(", not ")
        return f"{start[0]}, but found element of type {named_type(value[0])} at pos 0"
    return wrong_argument(name, parameter.name, wanted, value, position)


def _said(name: str, form: Form, arguments: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Why the arguments do not fit a form; None where they do."""
    of_numbers = name.removesuffix("_") in NUMBERS_AS_TENSORS
    parameters, count = form.parameters, len(arguments)
    takes_many = form.n_positional == 1 and parameters[0].kind.startswith("ints")
    if count > form.n_positional and not takes_many:
        return _too_many(name, form, count)
    left = dict(named)
    position = 0
    for parameter in parameters:
        by_name = position >= count
        if by_name:
            key = next((each for each in _names(parameter, parameters) if each in left), None)
            if key is None:
                if parameter.is_required:
                    return _missing(name, form, position, named)
                continue
            value = left.pop(key)
        elif parameter.by_name:
            return _too_many(name, form, count)
        else:
            value = arguments[position]
        is_fit = (value is None and parameter.takes_none) or _fits(
            parameter.kind, value, of_numbers
        )
        if not is_fit and takes_many and not position and not by_name and _is_int(value):
            position = count
            continue
        if not is_fit:
            return _wrong(name, parameter, value, 0 if by_name else position + 1)
        position += not by_name
    if position < count:
        return _too_many(name, form, count)
    return _unknown(name, form, left) if left else None


def _names(parameter: FormParameter, parameters: list[FormParameter]) -> list[str]:
    """What a parameter is called: its own name, then NumPy's."""
    own = {each.name for each in parameters}
    return [
        parameter.name,
        *[
            numpy
            for numpy, ours in NUMPY_NAMES.items()
            if ours == parameter.name not in own - {ours}
        ],
    ]


def _too_many(name: str, form: Form, count: int) -> str:
    required = sum(each.is_required and not each.by_name for each in form.parameters)
    most = form.n_positional
    if required != most:
        return (
            f"{name}() takes from {required} to {most} positional arguments but {count} were given"
        )
    plural = "" if most == 1 else "s"
    was = "was" if count == 1 else "were"
    return f"{name}() takes {most} positional argument{plural} but {count} {was} given"


def _missing(name: str, form: Form, position: int, named: dict[str, Any]) -> str:
    names = [
        f'"{each.name}"'
        for each in form.parameters[position:]
        if each.is_required and not any(key in named for key in _names(each, form.parameters))
    ]
    return (
        f"{name}() missing {len(names)} required positional argument"
        f"{'s' if len(names) == 1 else ''}: {', '.join(names)}"
    )


def _unknown(name: str, form: Form, left: dict[str, Any]) -> str:
    key = next(iter(left))
    if key in [each.name for each in form.parameters]:
        return f"{name}() got multiple values for argument '{key}'"
    return f"{name}() got an unexpected keyword argument '{key}'"


def _unpacked(
    name: str, form: Form, arguments: tuple[Any, ...], named: dict[str, Any]
) -> TypeError | None:
    """torch's error where the first of several ints is one and a later one is not."""
    for place, parameter in enumerate(form.parameters):
        given = arguments[place] if place < len(arguments) else named.get(parameter.name)
        if parameter.kind.startswith("ints") and isinstance(given, (tuple, list)):
            for at, each in enumerate(given):
                if not _is_int(each):
                    return not_an_int(name, parameter.name, 0, at, named_type(each))
    return None


@functools.cache
def _forms(name: str, is_method: bool) -> tuple[Form, ...]:
    from flambeau.tensor.arguments.signatures import FORMS

    texts = FORMS.get(name) or FORMS.get(name.removesuffix("_"), ())
    if is_method:
        texts = tuple(text for text in texts if text.startswith("Tensor input"))
    return tuple(Form(text, is_method) for text in texts)


def refusal(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any], is_method: bool
) -> TypeError | None:
    """torch's error for a call that fits no form of `name`; None where one fits."""
    forms = _forms(name, is_method)
    if is_method:
        arguments = arguments[1:]
    said = []
    for form in forms:
        why = _said(name, form, arguments, named)
        if why is None:
            return _unpacked(name, form, arguments, named)
        said.append(why)
    if not forms:
        return None
    if is_method and not forms[0].parameters and len(forms) == 1:
        what = "keyword arguments" if named else f"arguments ({len(arguments)} given)"
        return TypeError(f"TensorBase.{name}() takes no {what}")
    count = len(arguments) + len(named)
    plausible = [
        n for n, form in enumerate(forms) if form.n_required <= count <= len(form.parameters)
    ]
    if len(forms) == 1 or len(plausible) == 1:
        return TypeError(said[plausible[0] if plausible else 0])
    expected = "; ".join(f"({form.text})" for form in forms)
    return invalid_combination(name, arguments, named, expected)


def answered(name: str, is_method: bool, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """While a call's error is being handled: torch's error where the arguments fit no form, else
    the error itself."""
    told = refusal(name, arguments, named, is_method)
    error = sys.exception()
    if told is None:
        as_method = getattr(error, "as_method", None)
        if is_method and as_method is not None:
            raise as_method from None
        raise
    raise told from None if _says_the_same(error) else error


def _says_the_same(error: BaseException | None) -> bool:
    """Whether an error is a check of flambeau's own, of which the refusal leaves nothing unsaid:
    not a fault in the code of an argument (its __index__ ...), nor one in ours."""
    if not isinstance(error, (TypeError, ValueError, RuntimeError)):
        return False
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and is_internal(place.tb_frame.f_code)
