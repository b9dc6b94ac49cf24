"""Integer fills: one word below 2^28 values, two from there on, and permutations.

Keeps     torch's modulo, bias included. The remainder of a 32-bit word comes from two products
          (Lemire), which gives the same integer as a division.
Touches   twister.py, convert.py, fill.py.
Not here  bounds and their checks (random/fills.py).
Source    Lemire, Kaser, Kurz, Faster remainder by direct computation (2019)."""

from __future__ import annotations

from flambeau.random.native.convert import in_runs
from flambeau.random.native.fill import Fill
from flambeau.random.native.twister import Body, stream, take
from flambeau.random.native.writer import Function, Value


def _remainder(f: Function, word: Value, divisor: Value, magic: Value) -> Value:
    """word mod divisor for a word of 32 bits and magic = ceil(2^64 / divisor) mod 2^64."""
    fraction = (magic * word).cast("zext", "i128")
    return ((fraction * divisor.cast("zext", "i128")) >> 64).cast("trunc", "i64")


def integers_narrow(fill: Fill) -> None:
    """Parameters: range, ceil(2^64 / range), from. r32 mod range + from."""
    f = fill.f
    divisor, magic, base = fill.parameters("i64", "i64", "i64")

    def body(words: Value, place: Value) -> None:
        word = f.load("i32", words).cast("zext", "i64")
        f.store(_remainder(f, word, divisor, magic) + base, place)

    _through_runs(fill, 1, body)


def integers_wide(fill: Fill) -> None:
    """Parameters: range (0 for 2^64), floor(2^64 / range), from. r64 mod range + from.

    The quotient from the product is the true one or one less, so one subtraction may be left to
    do: where it is not, it wraps around and the unsigned minimum drops it.
    """
    f = fill.f
    divisor, magic, base = fill.parameters("i64", "i64", "i64")
    wide_magic = magic.cast("zext", "i128")

    def body(words: Value, place: Value) -> None:
        high = f.load("i32", words).cast("zext", "i64") << 32
        word = high | f.load("i32", words, 4).cast("zext", "i64")
        quotient = ((word.cast("zext", "i128") * wide_magic) >> 64).cast("trunc", "i64")
        rest = word - quotient * divisor
        f.store(f.intrinsic("umin", rest, rest - divisor) + base, place)

    _through_runs(fill, 2, body)


def _through_runs(fill: Fill, words: int, body: Body) -> None:
    """Integers of 64 bits, run by run, cast to the dtype."""

    def generate(buffer: Value, run: Value, _done: Value) -> None:
        stream(
            fill.f,
            fill.state,
            buffer,
            run,
            step_elements=1,
            step_words=words,
            itemsize=8,
            body=body,
            has_tail=False,
        )

    in_runs(fill.f, fill.count, fill.target, fill.dtype, generate, store="store_integers")


def _iota(fill: Fill) -> None:
    with fill.f.count(fill.count) as i:
        fill.f.store(i, fill.target, i << 3)


def permutation_narrow(fill: Fill) -> None:
    """0 .. count - 1 as int64, each place swapped with a later one; count - 1 words."""
    f = fill.f
    _iota(fill)
    start = fill.target.cast("ptrtoint", "i64")

    def body(words: Value, place: Value) -> None:
        i = (place.cast("ptrtoint", "i64") - start) >> 3
        left = (fill.count - i).cast("trunc", "i32")
        other = f.at(place, (f.load("i32", words) % left).cast("zext", "i64") << 3)
        mine = f.load("i64", place)
        f.store(f.load("i64", other), place)
        f.store(mine, other)

    stream(
        f, fill.state, fill.target, fill.count - 1,
        step_elements=1, step_words=1, itemsize=8, body=body, has_tail=False,
    )  # fmt: skip


def permutation_wide(fill: Fill) -> None:
    """The inside-out shuffle of very long permutations; two words an element."""
    f = fill.f
    with f.count(fill.count) as i:
        words = take(f, fill.state, 2)
        high = f.load("i32", words).cast("zext", "i64") << 32
        other = (high | f.load("i32", words, 4).cast("zext", "i64")) % (i + 1)
        f.store(f.load("i64", fill.target, other << 3), fill.target, i << 3)
        f.store(i, fill.target, other << 3)
