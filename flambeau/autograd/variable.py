"""torch.autograd.Variable: the old name of a tensor with a history.

Keeps     Variable(x, requires_grad) is a tensor on x's memory; isinstance(x, Variable) is true of
          every tensor.
Touches   gradients.
Not here  Tensor."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.gradients.entry import backward
from flambeau.gradients.members import set_requires_grad
from flambeau.gradients.runtime import RUNTIME


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, RUNTIME.tensor)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return super().__subclasscheck__(subclass) or issubclass(subclass, RUNTIME.tensor)


class Variable(metaclass=_VariableMeta):
    """Variable(data, requires_grad=False): a tensor that shares the memory of `data`."""

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        """Raises TypeError for anything but a tensor."""
        if data is None:
            return RUNTIME.tensor()
        if not isinstance(data, RUNTIME.tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        made = RUNTIME.alias(data)
        made._versions = None
        if requires_grad:
            set_requires_grad(made, True)
        return made

    @staticmethod
    def _execution_engine_run_backward(*arguments: Any, **named: Any) -> None:
        backward(*arguments, **named)
