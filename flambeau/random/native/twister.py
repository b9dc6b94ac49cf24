"""mt19937 in vectors of eight words: seeding, twist, tempering, and loops that read the words.

Keeps     the twist is lazy: it happens when a word is wanted and none is left, so that a position
          after any draw is torch's. Words left over when a step needs more than there are move in
          front of the next twist's, and a step always reads contiguous memory.
Touches   layout.py, writer.py.
Not here  what becomes of the words (uniform.py and its neighbours).
Source    Matsumoto and Nishimura, Mersenne Twister (1998)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.random.native import layout
from flambeau.random.native.writer import Function, Module, Value

_V: Final = "<8 x i32>"
_LOWER: Final = 0x7FFFFFFF
_UPPER: Final = 0x80000000
_MATRIX: Final = 0x9908B0DF
_STEP_WORDS: Final = 32  # most words one step may take: what fits in layout.BEFORE

Body = Callable[[Value, Value], None]  # (address of words, address of results) -> writes them


def add_twister(module: Module) -> None:
    """The functions below, which every family of fills needs."""
    _add_seed(module)
    _add_temper(module)
    _add_twist(module)
    _add_prepare(module)
    _add_ensure(module)
    _add_skip(module)


def _add_seed(module: Module) -> None:
    f = module.function("seed_words", ["ptr"])
    (state,) = f.parameters
    previous = f.variable("i32", f.load("i32", state, layout.SEED))
    f.store(previous.now, state, layout.RAW)
    with f.count(layout.WORDS - 1) as i:
        number = (i + 1).cast("trunc", "i32")
        last = previous.now
        word = (last ^ (last >> 30)) * 1812433253 + number
        previous.set(word)
        f.store(word, state, (i << 2) + (layout.RAW + 4))
    f.give()


def _tempered(y: Value) -> Value:
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


def _add_temper(module: Module) -> None:
    f = module.function("temper_words", ["ptr"])
    (state,) = f.parameters
    with f.count(layout.WORDS, 8) as i:
        place = f.at(state, i << 2)
        f.store(_tempered(f.load(_V, place, layout.RAW)), place, layout.TEMPERED)
    f.give()


def _add_twist(module: Module) -> None:
    """Word i + 624 of one endless sequence; 624 = 78 * 8, so no vector is ragged."""
    f = module.function("twist", ["ptr"])
    (state,) = f.parameters
    with f.count(layout.WORDS, 8) as i:
        place = f.at(state, i << 2)
        first = f.load(_V, place, layout.RAW)
        second = f.load(_V, place, layout.RAW + 4)
        far = f.load(_V, place, layout.RAW + 4 * layout.SHIFT)
        mixed = (first & _UPPER) | (second & _LOWER)
        odd = (0 - (second & 1)) & _MATRIX
        word = far ^ (mixed >> 1) ^ odd
        f.store(word, place, layout.RAW)  # the next twist's past; this one has read it already
        f.store(word, place, layout.RAW + 4 * layout.WORDS)
        f.store(_tempered(word), place, layout.TEMPERED)
    f.give()


def _add_prepare(module: Module) -> None:
    """Do what seeding or setting the state left for the first fill."""
    f = module.function("prepare", ["ptr"])
    (state,) = f.parameters
    pending = f.load("i64", state, layout.PENDING)
    with f.when(pending.differs(0)):
        with f.when(pending.equal(layout.SEEDING)):
            f.call("seed_words", state)
        with f.when(pending.equal(layout.TEMPERING)):
            f.call("temper_words", state)
        f.store(f.constant("i64", 0), state, layout.PENDING)
    f.give()


def _add_ensure(module: Module) -> None:
    """Make the next `words` (at most 32) words readable in one piece; gives the position."""
    f = module.function("ensure", ["ptr", "i64"], "i64")
    state, words = f.parameters
    position = f.load("i64", state, layout.POSITION)
    missing = (position + words) > layout.WORDS
    result = f.variable("i64", position)
    with f.when(missing):
        for offset in range(0, 4 * _STEP_WORDS, 32):
            end = layout.TEMPERED + 4 * (layout.WORDS - _STEP_WORDS)
            f.store(f.load(_V, state, end + offset), state, layout.BEFORE + offset)
        f.call("twist", state)
        moved = position - layout.WORDS
        f.store(moved, state, layout.POSITION)
        f.store(f.constant("i64", 0), state, layout.FRESH)
        result.set(moved)
    f.give(result.now)


def _add_skip(module: Module) -> None:
    """skip_words(state, count): use up words without looking at them."""
    f = module.function("skip_words", ["ptr", "i64"])
    state, count = f.parameters
    left = f.variable("i64", count)
    with f.forever() as loop:
        loop.leave_if(left.now <= 0)
        position = f.call("ensure", state, f.constant("i64", 1))
        used = f.minimum(left.now, layout.WORDS - position)
        f.store(position + used, state, layout.POSITION)
        left.set(left.now - used)
    f.give()


def word_address(f: Function, state: Value, position: Value) -> Value:
    """Address of the tempered word at `position`."""
    return f.at(f.at(state, layout.TEMPERED), position << 2)


def take(f: Function, state: Value, words: int) -> Value:
    """Address of the next `words` words, which are used up by this."""
    position = f.call("ensure", state, f.constant("i64", words))
    f.store(position + words, state, layout.POSITION)
    return word_address(f, state, position)


def stream(
    f: Function,
    state: Value,
    target: Value,
    count: Value,
    *,
    step_elements: int,
    step_words: int,
    itemsize: int,
    body: Body,
    has_tail: bool = True,
) -> None:
    """Run `body` over `count` elements, `step_elements` at a time from `step_words` words each.

    The ragged end runs the same body into a spill of the stack; only valid elements are copied
    and only their words are used up.
    """
    per_element = step_words // step_elements
    done = f.variable("i64", 0)
    with f.forever() as loop:
        left = count - done.now
        loop.leave_if(left < step_elements)
        position = f.call("ensure", state, f.constant("i64", step_words))
        ready = f.constant("i64", layout.WORDS) - position
        steps = f.minimum(ready / step_words, left / step_elements)
        words = word_address(f, state, position)
        place = f.at(target, done.now * itemsize)
        with f.count(steps) as i:
            body(f.at(words, i * (4 * step_words)), f.at(place, i * (step_elements * itemsize)))
        f.store(position + steps * step_words, state, layout.POSITION)
        done.set(done.now + steps * step_elements)
    if not has_tail:  # the caller's count is a multiple of step_elements
        return
    left = count - done.now
    with f.when(left > 0):
        used = left * per_element
        position = f.call("ensure", state, used)
        spill = f.buffer(step_elements * itemsize)
        body(word_address(f, state, position), spill)
        f.copy_bytes(f.at(target, done.now * itemsize), spill, left * itemsize)
        f.store(position + used, state, layout.POSITION)


def wide_words(f: Function, words: Value) -> Value:
    """Four 64-bit words from eight: the first of each pair is the high half."""
    pairs = f.load("<8 x i32>", words)
    swapped = f.shuffle(pairs, pairs, [1, 0, 3, 2, 5, 4, 7, 6])
    return swapped.bits_as("<4 x i64>")


def unit_doubles(f: Function, words: Value) -> Value:
    """Four doubles on [0, 1): the low 53 bits of a 64-bit word."""
    low = wide_words(f, words) & (2**53 - 1)
    return low.cast("uitofp", "double") * 2.0**-53


def unit_floats(f: Function, words: Value) -> Value:
    """Eight floats on [0, 1): the low 24 bits of a word."""
    low = f.load("<8 x i32>", words) & (2**24 - 1)
    return low.cast("sitofp", "float") * 2.0**-24


def add_unit_double(module: Module) -> None:
    """unit_double(state): one double on [0, 1)."""
    f = module.function("unit_double", ["ptr"], "double")
    (state,) = f.parameters
    words = take(f, state, 2)
    high = f.load("i32", words).cast("zext", "i64")
    low = f.load("i32", words, 4).cast("zext", "i64")
    f.give((((high & (2**21 - 1)) << 32) | low).cast("sitofp", "double") * 2.0**-53)


def add_unit_many(module: Module) -> None:
    """unit_many(state, target, count): doubles on [0, 1)."""
    f = module.function("unit_many", ["ptr", "ptr", "i64"])
    state, target, count = f.parameters

    def body(words: Value, place: Value) -> None:
        f.store(unit_doubles(f, words), place)

    stream(f, state, target, count, step_elements=4, step_words=8, itemsize=8, body=body)
    f.give()
