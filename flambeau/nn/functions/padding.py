"""Padding: constants, reflections, replicas and circles around a tensor.

Keeps     padding counts from the last dim, as torch's; what is not a constant is a gather along
          each padded dim, whose gradient adds up in a fixed order.
Touches   tensor.functions.
Not here  constant_pad_nd itself (ops.indexing.joins)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flambeau.base.errors import helped
from flambeau.gradients.autocast import in_float32
from flambeau.tensor import functions as t


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """The tensor with `pad` places more at both ends of its last dims."""
    sides = [int(side) for side in pad]
    if len(sides) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(sides) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(sides)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return t.constant_pad_nd(input, tuple(sides), 0.0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_dims(input, sides)
    if mode == "circular":
        return _repeated(input, sides, mode)
    return in_float32(_repeated)(input, sides, mode)


def _repeated(input: Any, sides: list[int], mode: str) -> Any:
    """Padded with places of its own."""
    for number in range(len(sides) // 2):
        dim = input.dim() - 1 - number
        before, after = sides[2 * number : 2 * number + 2]
        if before or after:
            if mode == "reflect" and max(before, after) >= input.shape[dim]:
                raise RuntimeError(
                    helped(
                        "Argument #4: Padding size should be less than the corresponding input "
                        f"dimension, but got: padding ({before}, {after}) at dimension {dim} of "
                        f"input {list(input.shape)}",
                        expected=f"at most {input.shape[dim] - 1} at each end",
                    )
                )
            places = _places(mode, input.shape[dim], before, after)
            input = t.index_select(input, dim, places)
    return input


def _check_dims(input: Any, sides: list[int]) -> None:
    n_padded = len(sides) // 2
    if not (len(sides) in (2, 4, 6) and input.dim() in (n_padded + 1, n_padded + 2)):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
        )


@lru_cache(maxsize=256)
def _places(mode: str, size: int, before: int, after: int) -> Any:
    """Where each place of the padded dim comes from."""
    from flambeau.tensor import creation

    if mode == "circular" and (before > size or after > size):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    places = []
    for place in range(-before, size + after):
        if mode == "replicate":
            place = min(max(place, 0), size - 1)
        elif mode == "circular":
            place %= size
        elif place < 0:
            place = -place
        elif place >= size:
            place = 2 * (size - 1) - place
        places.append(place)
    return creation.tensor(places)
