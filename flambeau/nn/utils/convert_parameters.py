"""Parameters as one vector, and back.

Keeps     order and shapes of the parameters.
Touches   tensor.functions.
Not here  state dicts (modules.state)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.tensor import Tensor
from flambeau.tensor import functions as t


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters flattened, one after the other."""
    return t.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let parameters look at slices of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view(parameter.shape).data
        start += count
