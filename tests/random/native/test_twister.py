"""Words and positions against Python's own mt19937, which shares nothing with ours."""

from __future__ import annotations

import ctypes
import random
import struct

import pytest

from flambeau.base import dtypes
from flambeau.random import fills
from flambeau.random.generator import Generator


def reference(generator: Generator) -> random.Random:
    """Python's generator at the same place of the same stream."""
    data = generator.state_bytes()
    position = struct.unpack_from("<Q", data, 16)[0]
    left = struct.unpack_from("<i", data, 8)[0]
    words = struct.unpack_from("<624Q", data, 24)
    python = random.Random()
    python.setstate((3, (*words, 624 if left == 1 and position == 0 else position), None))
    return python


def word(python: random.Random) -> int:
    return python.getrandbits(32)


@pytest.mark.parametrize("start", [0, 1, 3, 7, 607, 623, 624, 625, 1300])
def test_words_after_any_start(start: int) -> None:
    """Whole runs of words, from every phase of the twist."""
    generator = Generator().manual_seed(99)
    python = reference(generator)
    fills.skip_words(generator, start)
    for _ in range(start):
        word(python)
    for count in (1, 2, 5, 8, 9, 640, 3, 1249):
        assert fills.draw_words(generator, count) == tuple(word(python) for _ in range(count))
        assert fills.draw_64_bits(generator) == (word(python) << 32 | word(python))


@pytest.mark.parametrize("start", [0, 1, 611, 622, 623])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 311, 312, 313, 700])
def test_doubles_across_a_twist(start: int, count: int) -> None:
    """A pair of words may straddle the twist, and nothing is written past the end."""
    generator = Generator().manual_seed(-7)
    fills.skip_words(generator, start)
    python = reference(generator)
    buffer = (ctypes.c_double * (count + 8))(*[7.0] * (count + 8))
    fills.fill_uniform(generator, ctypes.addressof(buffer), count, dtypes.float64)
    wanted = [((word(python) << 32 | word(python)) % 2**53) * 2.0**-53 for _ in range(count)]
    assert list(buffer) == wanted + [7.0] * 8
    assert fills.draw_words(generator, 1) == (word(python),)


@pytest.mark.parametrize(
    ("low", "n_values"),
    [(0, 1), (-3, 7), (0, 2**28 - 1), (5, 2**28), (0, 2**32 + 1), (0, 3 * 2**62), (-1, 2**63 + 1)],
)
def test_remainders(low: int, n_values: int) -> None:
    """Remainders by products are those of a division."""
    bits = 32 if n_values < 2**28 else 64
    generator = Generator().manual_seed(3)
    python = reference(generator)
    buffer = (ctypes.c_int64 * 2000)()
    draw = fills.Draw(low, n_values, bits)
    fills.fill_integers(generator, ctypes.addressof(buffer), 2000, dtypes.int64, draw)
    for value in buffer:
        drawn = word(python) if bits == 32 else word(python) << 32 | word(python)
        assert value == (drawn % n_values + low + 2**63) % 2**64 - 2**63


def test_wide_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shuffle of very long permutations, at a length that can be tested."""
    monkeypatch.setattr(fills, "_PERMUTATION_WIDE_FROM", 1000)
    generator = Generator().manual_seed(8)
    python = reference(generator)
    buffer = (ctypes.c_int64 * 1000)()
    fills.fill_permutation(generator, ctypes.addressof(buffer), 1000)
    wanted: list[int] = [0] * 1000
    for i in range(1000):
        j = (word(python) << 32 | word(python)) % (i + 1)
        wanted[i] = wanted[j]
        wanted[j] = i
    assert list(buffer) == wanted
