"""Inputs spread over devices and results collected from them, where there are no devices.

Keeps     what holds no tensor is repeated, as in torch; tensors are refused.
Touches   base.trees.
Not here  DataParallel, which runs its module on the inputs as they are (data_parallel.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr
from flambeau.base.trees import tree_leaves
from flambeau.tensor import Tensor

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _refused(what: str) -> NoReturn:
    raise AssertionError(
        helped(
            f"{what} function not implemented for CPU tensors",
            fix="call the module itself, or DataParallel(module): one device does all",
        )
    )


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """One of the inputs for each device."""
    if any(isinstance(leaf, Tensor) for leaf in tree_leaves(inputs)):
        _refused("Scatter")
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """Arguments and named arguments for each device."""
    return tuple(scatter(inputs, target_gpus)), tuple(scatter(kwargs or {}, target_gpus))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The outputs of all devices on one of them."""
    _refused("Gather")


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of a module for each device."""
    _refused("Broadcast")


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """What each module makes of its own inputs: one after the other, kernels use all threads."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    named = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **extra)
        for module, given, extra in zip(modules, inputs, named, strict=True)
    ]


__getattr__ = module_getattr(__name__)
