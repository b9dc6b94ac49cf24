"""Sizes of convolutions: how many windows fit, how far they reach; torch's errors about them.

Keeps     plain ints.
Touches   base.errors.
Not here  the operators (convolution.py, windows.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.base.errors import helped

Ints = tuple[int, ...]

# Parts of a batch that gradients of weights are summed in.
_PARTS: Final = 16
# Weights of all parts together.
_PART_WEIGHTS: Final = 1 << 18


def repeated(name: str, given: Any, count: int) -> Ints:
    """A number or a sequence as one number for each spatial dim."""
    if isinstance(given, int):
        return (given,) * count
    numbers = tuple([int(each) for each in given])
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {name}={list(numbers)}"
        )
    return numbers


def window_counts(
    sizes: Sequence[int], kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Ints:
    """Windows that fit along each dim."""
    return tuple(
        (size + 2 * pad - far * (width - 1) - 1) // step + 1
        for size, width, step, pad, far in zip(
            sizes, kernel, stride, padding, dilation, strict=True
        )
    )


def reached_sizes(
    counts: Sequence[int], kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Ints:
    """Sizes that so many windows reach over, without the padding."""
    return tuple(
        (count - 1) * step - 2 * pad + far * (width - 1) + 1
        for count, width, step, pad, far in zip(
            counts, kernel, stride, padding, dilation, strict=True
        )
    )


def check_fits(sizes: Sequence[int], kernel: Ints, padding: Ints, dilation: Ints) -> None:
    """Refuse a kernel that reaches over more than the padded image."""
    around = [size + 2 * pad for size, pad in zip(sizes, padding, strict=True)]
    reach = [far * (width - 1) + 1 for width, far in zip(kernel, dilation, strict=True)]
    if any(size < far for size, far in zip(around, reach, strict=True)):
        raise RuntimeError(
            helped(
                f"Calculated padded input size per channel: ({' x '.join(map(str, around))}). "
                f"Kernel size: ({' x '.join(map(str, reach))}). Kernel size can't be greater than "
                "actual input size",
                fix="more padding, or a smaller kernel or dilation",
            )
        )


def three(sizes: Sequence[int], lead: int) -> tuple[int, int, int]:
    """Three spatial numbers, `lead` for dims that are not there."""
    one, two, last = (*(lead,) * (3 - len(sizes)), *sizes)
    return one, two, last


def n_parts(images: int, n_weights: int) -> tuple[int, int]:
    """Parts that a batch is summed in, images of each; few of many weights.

    >>> n_parts(33, 100), n_parts(33, 1 << 17)
    ((11, 3), (2, 17))
    """
    most = max(1, min(_PARTS, _PART_WEIGHTS // max(1, n_weights)))
    each = max(1, -(-images // most))
    return -(-images // each), each
