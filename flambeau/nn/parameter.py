"""Parameter and Buffer: tensors that a Module registers when they are assigned to it.

Keeps     a Parameter is a leaf with memory of its own tensor; it shares the data it is made from.
Touches   tensor, gradients.
Not here  registration (module.py), initial values (init.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.gradients import members
from flambeau.tensor import Tensor
from flambeau.tensor.tensor import empty_like_class


class Parameter(Tensor):
    """A tensor to be trained: `requires_grad` is True unless said otherwise.

    Raises   RuntimeError: the data's dtype cannot carry a gradient and requires_grad is True.
    Source   torch.nn.Parameter.

    >>> import flambeau as torch
    >>> torch.nn.Parameter(torch.tensor([1.0])).requires_grad
    True
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            from flambeau.nn import names as torch

            data = torch.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"cannot assign '{type(data).__name__}' object as data of a Parameter "
                "(torch.Tensor expected)"
            )
        made = cls._from_tensor(data)
        element = data._layout.dtype
        if requires_grad and not (element.is_floating_point or element.is_complex):
            raise RuntimeError(
                helped(
                    "Only Tensors of floating point and complex dtype can require gradients",
                    given=f"{element}",
                    fix="Parameter(data.float()), or requires_grad=False",
                )
            )
        if requires_grad:
            members.set_requires_grad(made, True)
        return made

    @classmethod
    def _from_tensor(cls, data: Tensor) -> Any:
        """A parameter over the tensor's memory, not yet asking for gradients."""
        return empty_like_class(cls, data)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.data.clone(), self.requires_grad)
        if self.grad is not None:
            made.grad = self.grad.clone()
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_rebuilt, (self.data, self.requires_grad))


def _rebuilt(data: Tensor, requires_grad: bool) -> Parameter:
    return Parameter(data, requires_grad)  # type: ignore[no-any-return]


class Buffer(Tensor):
    """A tensor that belongs to a module's state without being trained.

    persistent   whether it is part of state_dict
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            from flambeau.nn import names as torch

            data = torch.empty(0)
        made = empty_like_class(cls, data)
        made.persistent = persistent
        return made


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet."""

    __slots__ = ()
