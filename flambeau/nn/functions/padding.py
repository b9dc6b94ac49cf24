"""Padding: constants, reflections, replicas and circles around a tensor.

Keeps     padding counts from the last dim, as torch's; what is not a constant is a gather along
          each padded dim, whose gradient adds up in a fixed order.
Touches   tensor.functions.
Not here  constant_pad_nd itself (ops.indexing.joins)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.base.shapes import whole_numbers
from flambeau.gradients.autocast import in_float32
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t


def _padding(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str | None:
    """torch's node of padding with what the tensor holds."""
    stem = {"reflect": "Reflection", "replicate": "Replication"}.get(mode)
    if mode == "circular":
        return "torch::autograd::CopySlices"
    return None if stem is None else f"{stem}Pad{len(pad) // 2}DBackward0"


@shows(_padding)
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """The tensor with `pad` places more at both ends of its last dims."""
    sides = whole_numbers("pad", "pad", 2, pad)
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
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_dims(input, sides)
    if mode == "circular":
        return _repeated(input, sides, mode)
    return in_float32(_repeated)(input, sides, mode)


def _repeated(input: Any, sides: list[int], mode: str) -> Any:
    """Padded with places of its own."""
    if mode != "circular":
        _check_sizes(input, sides)
    padded = input
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
            padded = t.index_select(padded, dim, _places(mode, input.shape[dim], before, after))
    return padded.clone() if padded is input else padded


def _check_dims(input: Any, sides: list[int]) -> None:
    n_padded = len(sides) // 2
    if not (len(sides) in (2, 4, 6) and input.dim() in (n_padded + 1, n_padded + 2)):
        raise NotImplementedError(
            helped(
                f"Padding size {len(sides)} is not supported for {input.dim()}D input tensor.",
                expected="2, 4 or 6 numbers for the last 1, 2 or 3 dims; before those, channels, "
                "or a batch and channels",
            )
        )


def _check_sizes(input: Any, sides: list[int]) -> None:
    """Refuse to repeat what is empty, and to crop all there is."""
    n_padded = len(sides) // 2
    is_batch = input.dim() == n_padded + 2
    if 0 in input.shape[is_batch:]:
        raise RuntimeError(
            f"Expected {n_padded + 1}D or {n_padded + 2}D (batch mode) tensor with possibly 0 "
            "batch size and other non-zero dimensions for input, but got: "
            f"{list(input.shape)}"
        )
    spatial = input.shape[-n_padded:]
    outputs = [size + sides[-2 * dim - 2] + sides[-2 * dim - 1] for dim, size in enumerate(spatial)]
    if min(outputs) < 1:
        letters = "DHW"[-n_padded:]
        given = ", ".join(f"{at}: {size}" for at, size in zip(letters, spatial, strict=True))
        wanted = " ".join(f"{at}: {size}" for at, size in zip(letters, outputs, strict=True))
        raise RuntimeError(f"input ({given}) is too small. Calculated output {wanted}")


@lru_cache(maxsize=256)
def _places(mode: str, size: int, before: int, after: int) -> Any:
    """Where each place of the padded dim comes from."""
    from flambeau.tensor import creation

    if mode == "circular" and (before > size or after > size):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if mode == "circular" and size + before + after < 0:
        raise RuntimeError("Negative padding value is resulting in an empty dimension")
    first = max(-before, 0)  # of the circle: what is cropped is no part of it
    period = size - first - max(-after, 0)
    places = []
    for place in range(-before, size + after):
        if mode == "replicate":
            place = min(max(place, 0), size - 1)
        elif mode == "circular":
            place = first + (place - first) % period
        elif place < 0:
            place = -place
        elif place >= size:
            place = 2 * (size - 1) - place
        places.append(place)
    return creation.tensor(places, dtype=dtypes.int64)
