"""Integer fills: one word below 2^28 values, two from there on, and permutations.

Keeps     torch's modulo, bias included. The remainder of a 32-bit word comes from two products
          (Lemire), which gives the same integer as a division.
Touches   twister.py, convert.py, fill.py.
Not here  bounds and their checks (random/fills.py).
Source    Lemire, Kaser, Kurz, Faster remainder by direct computation (2019)."""

from __future__ import annotations

from flambeau.random.native import layout
from flambeau.random.native.convert import in_runs
from flambeau.random.native.fill import Fill
from flambeau.random.native.twister import take, word_address
from flambeau.random.native.writer import Function, Value


def _remainder(f: Function, word: Value, divisor: Value, magic: Value) -> Value:
    """word mod divisor for a word of 32 bits and magic = ceil(2^64 / divisor) mod 2^64."""
    fraction = (magic * word).cast("zext", "i128")
    return ((fraction * divisor.cast("zext", "i128")) >> 64).cast("trunc", "i64")


def integers_narrow(fill: Fill) -> None:
    """Parameters: range, ceil(2^64 / range), from. r32 mod range + from."""
    f = fill.f
    divisor, magic, base = fill.parameters("i64", "i64", "i64")

    def generate(buffer: Value, run: Value, _done: Value) -> None:
        done = f.variable("i64", 0)
        with f.forever() as loop:
            loop.leave_if(done.now >= run)
            position = f.call("ensure", fill.state, f.constant("i64", 1))
            ready = f.constant("i64", layout.WORDS) - position
            part = f.minimum(ready, run - done.now)
            words = word_address(f, fill.state, position)
            place = f.at(buffer, done.now << 3)
            with f.count(part) as i:
                word = f.load("i32", words, i << 2).cast("zext", "i64")
                f.store(_remainder(f, word, divisor, magic) + base, place, i << 3)
            f.store(position + part, fill.state, layout.POSITION)
            done.set(done.now + part)

    in_runs(f, fill.count, fill.target, fill.dtype, generate, store="store_integers")


def integers_wide(fill: Fill) -> None:
    """Parameters: range (0 for 2^64), from. r64 mod range + from."""
    f = fill.f
    divisor, base = fill.parameters("i64", "i64")
    is_whole = divisor.equal(0)
    divisor = is_whole.choose(1, divisor)

    def generate(buffer: Value, run: Value, _done: Value) -> None:
        with f.count(run) as i:
            words = take(f, fill.state, 2)
            high = f.load("i32", words).cast("zext", "i64") << 32
            word = high | f.load("i32", words, 4).cast("zext", "i64")
            f.store(is_whole.choose(word, word % divisor) + base, buffer, i << 3)

    in_runs(f, fill.count, fill.target, fill.dtype, generate, store="store_integers")


def _iota(fill: Fill) -> None:
    with fill.f.count(fill.count) as i:
        fill.f.store(i, fill.target, i << 3)


def permutation_narrow(fill: Fill) -> None:
    """0 .. count - 1 as int64, each place swapped with a later one; count - 1 words."""
    f = fill.f
    _iota(fill)
    with f.count(fill.count - 1) as i:
        word = f.load("i32", take(f, fill.state, 1))
        left = (fill.count - i).cast("trunc", "i32")
        other = i + (word % left).cast("zext", "i64")
        mine = f.load("i64", fill.target, i << 3)
        f.store(f.load("i64", fill.target, other << 3), fill.target, i << 3)
        f.store(mine, fill.target, other << 3)


def permutation_wide(fill: Fill) -> None:
    """The inside-out shuffle of very long permutations; two words an element."""
    f = fill.f
    with f.count(fill.count) as i:
        words = take(f, fill.state, 2)
        high = f.load("i32", words).cast("zext", "i64") << 32
        other = (high | f.load("i32", words, 4).cast("zext", "i64")) % (i + 1)
        f.store(f.load("i64", fill.target, other << 3), fill.target, i << 3)
        f.store(i, fill.target, other << 3)
