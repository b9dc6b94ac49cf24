"""Histories of results that do not move with what they were drawn by, and names given by hand.

Keeps     such results require gradients, as torch's do, and hand zeros on; where torch has no
          derivative the backward pass raises when it arrives.
Touches   graph, members, modes, runtime.
Not here  operators' own nodes (record.py), the names that follow from operators (names.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flambeau.gradients.graph import Node, OperatorNode, Output, named_class, next_sequence
from flambeau.gradients.members import history
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.runtime import RUNTIME

_Function = TypeVar("_Function", bound=Callable[..., Any])


class DrawnNode(Node):
    """Hands zeros to whatever a result was drawn by; raises `refusal` where there is one."""

    __slots__ = ("kind", "refusal")

    def __init__(self, kind: str, refusal: str | None, tensors: Sequence[Any]) -> None:
        self.edges = tuple([history(each) for each in tensors])
        self.layouts = tuple([each._layout for each in tensors])
        self.extras = None
        self.site = None
        self.sequence = next_sequence()
        self.kind = kind
        self.refusal = refusal

    def node_name(self) -> str:
        """The name given."""
        return self.kind

    def apply(self, cotangent: Any) -> Sequence[Any]:
        """Zeros for each operand that wants something."""
        if self.refusal is not None:
            raise RuntimeError(self.refusal)
        return [
            None if edge is None
            else RUNTIME.functions.zeros(layout.shape, dtype=layout.dtype, device=layout.device)
            for edge, layout in zip(self.edges, self.layouts, strict=True)
        ]  # fmt: skip


def attach_drawn(made: Any, kind: str, *tensors: Any, refused: str | None = None) -> Any:
    """Give a fresh result the history of a draw from `tensors`; returns it.

    refused    torch's name of what has no derivative
    """
    if is_grad_enabled() and any(history(each) is not None for each in tensors):
        refusal = None if refused is None else f"derivative for aten::{refused} is not implemented"
        made._autograd = DrawnNode(kind, refusal, tensors)
    return made


def rename(made: Any, name: str) -> Any:
    """Call a result's node by torch's name of the function that made it; returns the result."""
    own = made._autograd
    node = own.node if own.__class__ is Output else own
    if node.__class__ is OperatorNode:
        node.__class__ = named_class(name)
    return made


def shows(name: str | Callable[..., str | None]) -> Callable[[_Function], _Function]:
    """A function of several operators whose results show the node that torch has for it.

    name    the node's name, or what works it out from the arguments (None: as it is)
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def renamed(*arguments: Any, **named: Any) -> Any:
            made = function(*arguments, **named)
            shown = name if isinstance(name, str) else name(*arguments, **named)
            if shown is None:
                return made
            for each in made if isinstance(made, (tuple, list)) else (made,):
                if isinstance(each, RUNTIME.tensor) and not any(each is a for a in arguments):
                    rename(each, shown)
            return made

        return renamed  # type: ignore[return-value]

    return decorate
