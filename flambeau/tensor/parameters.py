"""Public parameters of an operator, read off infer, formula or view.

Keeps     nothing is written twice: names, defaults and kinds are those of the operator's method.
Touches   ops.define.
Not here  arguments of a call (binding.py)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.ops.define import OPERAND_KINDS, Elementwise, Operator
from flambeau.ops.define import View as ViewOperator

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
