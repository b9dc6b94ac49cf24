"""torch's 5056 bytes of generator state, read from and written to the native layout.

Keeps     a state written by torch 2.13 continues here with the same draws, and the other way
          round. Plain Python: saving and restoring never load LLVM.
Touches   native/layout.py.
Not here  who holds the state (generator.py)."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from flambeau.base.errors import helped
from flambeau.random.native import layout

N_BYTES: Final = 5056
# initial seed, left, seeded, next; 624 words of 64 bits; 0, normal, 0, has normal, padding.
_HEAD: Final = Struct("<QiiQ")
_WORDS: Final = Struct(f"<{layout.WORDS}Q")
_NORMAL: Final = Struct("<dddiifi")
_NATIVE_HEAD: Final = Struct("<Qqqqqd")  # layout.SEED to layout.NORMAL
_NATIVE_WORDS: Final = Struct(f"<{layout.WORDS}I")
_WORDS_AT: Final = _HEAD.size
_NORMAL_AT: Final = _WORDS_AT + _WORDS.size

DEFAULT_SEED: Final = 67280421310721


def seed_native(native: memoryview, seed: int) -> None:
    """Start anew from `seed` (0 .. 2^64 - 1); the words are made by the first fill."""
    _NATIVE_HEAD.pack_into(native, 0, seed, layout.WORDS, 1, layout.SEEDING, 0, 0.0)


def seed_of(native: memoryview) -> int:
    """All 64 bits of the seed this state began with."""
    return int(_NATIVE_HEAD.unpack_from(native)[0])


def to_bytes(native: memoryview) -> bytes:
    """torch's form of a native state."""
    seed, position, fresh, pending, has_normal, normal = _NATIVE_HEAD.unpack_from(native)
    if pending == layout.SEEDING:
        words: Sequence[int] = _seeded_words(seed)
    else:
        words = _NATIVE_WORDS.unpack_from(native, layout.RAW)
    head = (seed, 1, 1, 0) if fresh else (seed, layout.WORDS + 1 - position, 1, position)
    tail = (0.0, normal if has_normal else 0.0, 0.0, int(has_normal != 0), 0, 0.0, 0)
    return _HEAD.pack(*head) + _WORDS.pack(*words) + _NORMAL.pack(*tail)


def from_bytes(native: memoryview, data: bytes) -> None:
    """Continue from torch's form; nothing changes if it is not a valid state."""
    if len(data) != N_BYTES:
        raise RuntimeError(
            helped(
                f"Expected a CPUGeneratorImplState of size {N_BYTES} but found the input RNG "
                f"state size to be {len(data)}",
                expected="the uint8 tensor that get_state() or get_rng_state() gave",
            )
        )
    seed, left, seeded, position = _HEAD.unpack_from(data)
    words = _WORDS.unpack_from(data, _WORDS_AT)
    _, normal, _, has_normal, _, _, _ = _NORMAL.unpack_from(data, _NORMAL_AT)
    fresh = left == 1 and position == 0
    consistent = fresh or (0 < left <= layout.WORDS and position + left == layout.WORDS + 1)
    if seeded != 1 or not consistent or max(words) >= 2**32:
        raise RuntimeError(
            helped(
                "Invalid mt19937 state",
                given=f"left {left}, next {position}, seeded {seeded}",
                expected=f"left + next = {layout.WORDS + 1}, or left 1 and next 0 after seeding; "
                "words below 2^32",
            )
        )
    used = layout.WORDS if fresh else position
    head = (seed, used, int(fresh), layout.TEMPERING, int(has_normal != 0), normal)
    _NATIVE_HEAD.pack_into(native, 0, *head)
    _NATIVE_WORDS.pack_into(native, layout.RAW, *words)


def _seeded_words(seed: int) -> list[int]:
    """mt19937's state after seeding with the low 32 bits, before any twist."""
    word = seed & 0xFFFFFFFF
    words = [word]
    for number in range(1, layout.WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + number) & 0xFFFFFFFF
        words.append(word)
    return words
