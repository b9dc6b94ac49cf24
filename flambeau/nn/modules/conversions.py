"""Module's conversions: all of its parameters and buffers in another dtype or place.

Keeps     parameters stay the same objects, so that optimizers go on with them.
Touches   parameters and buffers through a module's tables.
Not here  conversions of a tensor (tensor/own_members.py)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.dtypes import asked_for, dtype
from flambeau.gradients.modes import no_grad
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

if TYPE_CHECKING:
    from flambeau.nn.modules.module import Module


# How parameters are changed, as torch.__future__ sets it.
FLAGS: Final = {"overwrite": False, "swap": False}


def swapped(parameter: Any, data: Any) -> Any:
    """The parameter after it changed places with a new one of this data."""
    from flambeau.utils.swapping import swap_tensors

    swap_tensors(parameter, Parameter(data, parameter.requires_grad))
    return parameter


def _converted(parameter: Any, fn: Callable[[Tensor], Tensor]) -> Any:
    """A parameter and its gradient, each as fn of it; a new one where the old cannot hold it."""
    gradient = parameter.grad
    with no_grad():
        data = fn(parameter.data)
        changed = None if gradient is None else fn(gradient.data)
    if FLAGS["swap"]:
        parameter.grad = None
        parameter = swapped(parameter, data)
        parameter.grad = changed
    elif FLAGS["overwrite"] or data.is_meta is not parameter.is_meta:
        parameter = Parameter(data, parameter.requires_grad)
        parameter.grad = changed
    else:
        parameter.data = data
        if gradient is not None:
            gradient.data = changed
    return parameter


def apply_to_state(self: Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
    """Replace every tensor of state by fn of it; parameters stay the same objects."""
    if recurse:
        for module in self.children():
            module._apply(fn)
    for name, parameter in self._parameters.items():
        if parameter is not None:
            self._parameters[name] = _converted(parameter, fn)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self


def to(self: Module, *arguments: Any, **named: Any) -> Any:
    """Move or convert parameters and buffers; floating dtypes only reach floating tensors."""
    element = named.get("dtype")
    for argument in arguments:
        if isinstance(argument, (dtype, type)):
            element = asked_for(argument, "to")
        elif isinstance(argument, Tensor):
            element = argument.dtype
    if element is not None and not (element.is_floating_point or element.is_complex):
        raise TypeError(
            "nn.Module.to only accepts floating point or complex dtypes, but got desired "
            f"dtype={element}"
        )
    if element is not None and element.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, "
            "and some modules might not work as expected when using complex tensors as parameters "
            "or buffers. Please file an issue at https://github.com/pytorch/pytorch/issues/new?"
            "template=bug-report.yml if a complex module does not work as expected.",
            stacklevel=2,
        )
    rest = tuple(a for a in arguments if not isinstance(a, (dtype, type)))
    kept = {k: v for k, v in named.items() if k not in ("dtype", "memory_format")}

    def convert(tensor: Tensor) -> Tensor:
        try:
            moved = tensor.to(*rest, **kept) if rest or kept else tensor
        except NotImplementedError as error:
            if str(error) != "Cannot copy out of meta tensor; no data!":
                raise
            raise NotImplementedError(
                f"{error} Please use torch.nn.Module.to_empty() instead of "
                "torch.nn.Module.to() when moving module from meta to a different device."
            ) from None
        fits = tensor.is_floating_point() or tensor.is_complex()
        return moved.to(element) if element is not None and fits else moved

    return self._apply(convert)


def _cast(self: Module, convert: Callable[[Tensor], Tensor]) -> Any:
    return self._apply(lambda t: convert(t) if t.is_floating_point() else t)


def as_float(self: Module) -> Any:
    """Floating parameters and buffers as float32."""
    return _cast(self, lambda t: t.float())


def double(self: Module) -> Any:
    """Floating parameters and buffers as float64."""
    return _cast(self, lambda t: t.double())


def half(self: Module) -> Any:
    """Floating parameters and buffers as float16."""
    return _cast(self, lambda t: t.half())


def bfloat16(self: Module) -> Any:
    """Floating parameters and buffers as bfloat16."""
    return _cast(self, lambda t: t.bfloat16())


def as_type(self: Module, dst_type: Any) -> Any:
    """All parameters and buffers as dst_type."""
    return self._apply(lambda t: t.type(dst_type))


def cpu(self: Module) -> Any:
    """Parameters and buffers in host memory."""
    return self._apply(lambda t: t.cpu())


def cuda(self: Module, device: Any = None) -> Any:
    """Parameters and buffers on a GPU; torch's error where there is none."""
    return self._apply(lambda t: t.cuda(device))


def to_empty(self: Module, *, device: Any, recurse: bool = True) -> Any:
    """Parameters and buffers with undefined contents on a device."""
    from flambeau.nn import names as torch

    return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)


def share_memory(self: Module) -> Any:
    """Move state to shared memory; processes made by fork share it from then on."""
    return self._apply(lambda t: t.share_memory_())
