"""Measures float32 words over all 2^32 inputs, or every n-th, against float64 words. Not a test:

    python tests/codegen/exhaustive_math.py [--stride 7] [WORD ...]     (a minute a word at 7)

The float64 words are measured against mpmath by the tests; they are at most 2 ulp of float64 off,
which is 4e-9 ulp of float32.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from flambeau.base import dtypes
from flambeau.codegen.vocabulary import MATH_WORDS
from tests.codegen.math_support import word

BINARY = ("pow", "atan2", "fmod")
CHUNK = 1 << 20


def errors(name: str, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and their errors in ulp; inf where NaN, infinity or a zero's sign is wrong."""
    x = bits.view(np.float32)
    measured = word(name, dtypes.float32, x)
    with np.errstate(all="ignore"):
        exact = word(name, dtypes.float64, x.astype(np.float64))
        nearest = exact.astype(np.float32)
        last_place = np.spacing(
            np.maximum(np.abs(nearest), np.float32(2.0**-126)), dtype=np.float32
        )
        # A power of two is the smallest number with its last place: those below have half of it.
        last_place = np.where(np.abs(exact) < np.abs(nearest), _below(nearest), last_place)
        error = np.abs(measured.astype(np.float64) - exact) / last_place
        same = (measured == nearest) & (np.signbit(measured) == np.signbit(nearest))
        special = ~np.isfinite(nearest) | ~np.isfinite(measured)
        error = np.where(special, np.where(same, 0, np.inf), error)
    return x, np.where(np.isnan(measured) & np.isnan(nearest), 0, error)


def _below(nearest: np.ndarray) -> np.ndarray:
    """Last place of the number just below in size."""
    size = np.abs(nearest)
    return np.maximum(size - np.nextafter(size, np.float32(0)), np.float32(2.0**-149))


def measure(name: str, stride: int) -> None:
    """Prints the largest error, where it is, and how many exceed 1 ulp."""
    worst, where, over, total = 0.0, 0.0, 0, 0
    for start in range(0, 1 << 32, CHUNK * stride):
        stop = min(start + CHUNK * stride, 1 << 32)
        x, error = errors(name, np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32))
        total += x.size
        over += int((error > 1).sum())
        place = int(error.argmax())
        if error[place] > worst:
            worst, where = float(error[place]), float(x[place])
    print(f"{name:8} worst {worst:.3f} ulp at {where!r}; over 1 ulp: {over} of {total}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", default=[w for w in MATH_WORDS if w not in BINARY])
    parser.add_argument("--stride", type=int, default=7)
    options = parser.parse_args()
    for each in options.words:
        measure(each, options.stride)
