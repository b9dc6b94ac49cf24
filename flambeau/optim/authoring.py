"""What optimizers that are written after torch's own import from torch.optim.optimizer.

Keeps     answers are those for tensors on a CPU: no form of a step is preferred to the plain one.
Touches   gradients.modes, tensor.
Not here  Optimizer itself (optimizer.py), steps over lists of tensors (foreach.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from flambeau.base import promotion
from flambeau.base.dtypes import dtype, float32, float64
from flambeau.gradients.modes import is_grad_enabled, set_mode
from flambeau.tensor import Tensor
from flambeau.tensor.functions import view_as_real

# Annotations that programs' optimizers write: tensors, groups, or pairs of names and tensors.
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
_params_t = ParamsT

_params_doc: Final = "params: tensors, groups as dicts, or pairs of a name and a tensor."
_foreach_doc: Final = "foreach: steps over lists of tensors; taken, and the same result."
_fused_doc: Final = "fused: one kernel for all tensors; taken, and the same result."
_maximize_doc: Final = "maximize: go along the gradient instead of against it."
_capturable_doc: Final = "capturable: for recorded steps of CUDA; on a CPU, none."
_differentiable_doc: Final = "differentiable: steps keep their history."


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that keeps its history only where the optimizer's `differentiable` is set."""

    @functools.wraps(func)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = is_grad_enabled()
        set_mode(bool(self.defaults["differentiable"]))
        try:
            return func(self, *args, **kwargs)
        finally:
            set_mode(before)

    return stepped


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A decorator that gives the function back: nothing is traced."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    """The number of a tensor of one element; numbers as they are.

    >>> import flambeau as torch
    >>> _get_value(torch.tensor(2.0)), _get_value(3)
    (2.0, 3)
    """
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """The list as it is: nothing is traced."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dims; numbers as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is fused, or over lists, unasked: neither on a CPU."""
    return False, False


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """The dtype of step counts."""
    return float64 if promotion.default_dtype() is float64 and not is_fused else float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices whose steps can be recorded."""
    return ["cuda", "xpu", "hpu", *(["xla"] if supports_xla else [])]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Raises RuntimeError for a parameter that a fused step does not take."""
    if not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices; given one of {p.dtype}"
        )


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views of real and imaginary parts in the place of complex tensors in all the lists."""
    for place, each in enumerate(params):
        if each.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[place] = view_as_real(tensors[place])


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[Any, Any]:
    """The lists divided by the device and dtype of the first list's tensors, with places where
    they are asked for: {(device, dtype): (lists, places)}.

    >>> import flambeau as torch
    >>> tensors = [torch.ones(1), torch.ones(1).double()]
    >>> grouped = _group_tensors_by_device_and_dtype([tensors], with_indices=True)
    >>> [(key[1], places) for key, (_, places) in grouped.items()]
    [(torch.float32, [0]), (torch.float64, [1])]
    """
    found: dict[Any, Any] = {}
    for place, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, places = found.setdefault(key, ([[] for _ in tensorlistlist], []))
        for into, source in zip(lists, tensorlistlist, strict=True):
            if source:
                into.append(source[place])
        if with_indices:
            places.append(place)
    return found
