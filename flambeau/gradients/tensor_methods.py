"""Methods of Tensor that speak to gradients, as functions of the tensor; tensor/ installs them.

Keeps     torch's names, arguments and defaults.
Touches   entry, runtime.
Not here  the Tensor class."""

from __future__ import annotations

from typing import Any

from flambeau.gradients import entry
from flambeau.gradients.runtime import RUNTIME


def backward(
    self: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Any = None,
) -> None:  # fmt: skip
    """Add the gradients of this tensor to the .grad of the leaves it was computed from.

    gradient      weights of the elements; may be left out for a tensor of one element
    retain_graph  keep what is saved, for another pass; default: create_graph
    create_graph  record the pass too, for higher derivatives
    inputs        add to the .grad of these alone
    """
    given = None if gradient is None else (gradient,)
    entry.backward(self, given, retain_graph, create_graph, inputs=inputs)


def detach(self: Any) -> Any:
    """The same memory without history; in-place writes are seen by both and counted by both."""
    return RUNTIME.alias(self)
