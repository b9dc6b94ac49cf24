"""Where things lie in the 8192 bytes of a native generator state.

Keeps     words are 32 bits here; `tempered` holds the outputs of the last twist ready to be read,
          so that a fill is a loop over plain memory.
Touches   nothing.
Not here  torch's 5056 bytes (random/state.py), the twist (twister.py)."""

from __future__ import annotations

from typing import Final

WORDS: Final = 624  # words of a twist
SHIFT: Final = 397  # word i + 624 comes from words i, i + 1 and i + 397

SEED: Final = 0  # u64: all 64 bits of the seed
POSITION: Final = 8  # i64: words used of the last twist; 624 = twist before the next word
FRESH: Final = 16  # i64: 1 from seeding to the first word
PENDING: Final = 24  # i64: SEEDING or TEMPERING still to be done by the next fill, else 0
HAS_NORMAL: Final = 32  # i64: whether NORMAL waits to be used
NORMAL: Final = 40  # f64: second normal of a pair, without mean and std
RAW: Final = 64  # u32 x 1248: state words; the second half is scratch of the twist
BEFORE: Final = RAW + 4 * 2 * WORDS  # u32 x 32: words left over from the twist before
TEMPERED: Final = BEFORE + 4 * 32  # u32 x 624: outputs; reading past them stays in the state
N_BYTES: Final = 8192

SEEDING: Final = 1
TEMPERING: Final = 2

# Argument words that every fill starts with; its own parameters follow.
STATE_ARGUMENT: Final = 0
TARGET_ARGUMENT: Final = 1
COUNT_ARGUMENT: Final = 2
DTYPE_ARGUMENT: Final = 3
FIRST_PARAMETER: Final = 4

# Codes of dtypes in DTYPE_ARGUMENT.
DTYPE_CODES: Final = {
    "float64": 0, "float32": 1, "float16": 2, "bfloat16": 3,
    "int64": 4, "int32": 5, "int16": 6, "int8": 7, "bool": 8,
    "uint64": 4, "uint32": 5, "uint16": 6, "uint8": 7,  # the same bytes
}  # fmt: skip
