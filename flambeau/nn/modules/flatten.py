"""Flatten and Unflatten.

Keeps     views where strides allow, as torch's.
Touches   tensor methods.
Not here  the views (ops.views)."""

from __future__ import annotations

from typing import Any

from flambeau.nn.modules.module import Module


class Flatten(Module):
    """Dims from start_dim to end_dim as one."""

    __constants__ = ["end_dim", "start_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dim as several."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int):
            if not isinstance(unflattened_size, (tuple, list)):
                raise TypeError(
                    f"unflattened_size must be a tuple of ints, but found type "
                    f"{type(unflattened_size).__name__}"
                )
            for position, size in enumerate(unflattened_size):
                if not isinstance(size, int):
                    raise TypeError(
                        "unflattened_size must be tuple of ints, but found element of type "
                        f"{type(size).__name__} at pos {position}"
                    )
        elif not isinstance(dim, str):
            raise TypeError("dim must be str or int")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
