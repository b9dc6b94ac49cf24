"""Draws into memory: uniform, normal, integers, permutations, keep-masks.

Keeps     a fill happens at the call, in memory order, and leaves the generator exactly where torch
          2.13's would be. It checks its numbers as torch does; dtype and shape checks that need a
          tensor are the caller's. `address` is a contiguous buffer of `count` elements; inputs may
          be read up to 64 bytes past their end, as every memory block allows.
Touches   kernels.py, generator.py, base.dtypes.
Not here  other distributions (fills_sampled.py), tensors (the tensor room).

What each of torch's functions draws ("words" are 32-bit outputs):

    rand, rand_like, uniform_(a, b)     fill_uniform; complex: 2n reals
    randn, randn_like, normal_(m, s),   fill_normal(contiguous=whether the target is contiguous, in
    normal(float, float, size)          torch's sense); complex: 2n reals, s / sqrt(2)
    normal(M, S), normal(M, s), ...     fill_normal with mean 0 (and std 1 where S is a tensor) of
                                        the broadcast shape; then * S, then + M, as two operators
    randint, randint_like, random_      fill_integers; bounds by `random_bounds`
    randperm                            fill_permutation into int64, then cast to the dtype
    bernoulli_(p), bernoulli(x, p)      fill_bernoulli into bool, then cast
    bernoulli(P), bernoulli_(P)         fill_bernoulli_each (P float64 as it is, else as float32)
    dropout(p)                          fill_bernoulli(1 - p); then mask * (1 / (1 - p)) rounded to
                                        the dtype; p = 0 and p = 1 draw nothing
    dropout1d, 2d, 3d, feature_alpha    the same with count = samples * channels
    r64 of samplers and loaders         draw_64_bits(generator) % 2**63

    Order: in-place draws and *_like follow memory order (dimensions sorted by stride);
    bernoulli(P), poisson, _standard_gamma, binomial, normal(M, S), multinomial give a fresh
    contiguous result in logical order. An expanded target is refused before any draw."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from struct import Struct, pack, unpack
from typing import Final, NamedTuple

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.random.generator import Generator
from flambeau.random.kernels import run
from flambeau.random.native.layout import DTYPE_CODES

_PLAIN: Final = Struct("<QQqq")
_THREE_DOUBLES: Final = Struct("<QQqqddd")
_FOUR_FLOATS: Final = Struct("<QQqqfxxxxfxxxxfxxxxfxxxx")
_TWO_DOUBLES: Final = Struct("<QQqqdd")
_TWO_FLOATS: Final = Struct("<QQqqfxxxxfxxxx")
_ONE_INTEGER: Final = Struct("<QQqqQ")
_THREE_INTEGERS: Final = Struct("<QQqqQQQ")

CODES: Final = {dtypes.by_name(name): code for name, code in DTYPE_CODES.items()}
_UNIFORM: Final = {each: f"uniform_{each.name}" for each in dtypes.FLOATING}
_BLOCKS: Final = {each: f"normal_blocks_{each.name}" for each in dtypes.FLOATING}
_C_NAMES: Final = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip
_PERMUTATION_WIDE_FROM: Final = (2**32 - 1) // 20
_TWO_WORDS_FROM: Final = 2**28


def not_implemented(operation: str, element: dtype) -> NotImplementedError:
    """torch's error where an operation has no kernel for a dtype."""
    return NotImplementedError(
        f"\"{operation}\" not implemented for '{SCALAR_TYPE_NAMES[element.name]}'"
    )


def fill_uniform(
    generator: Generator,
    address: int,
    count: int,
    element: dtype,
    low: float = 0.0,
    high: float = 1.0,
) -> None:
    """low + u * (high - low), one word an element (float64: two)."""
    if element not in _UNIFORM:
        raise not_implemented("check_uniform_bounds", element)
    values: tuple[float, ...] = 0, 0.0, 1.0, 1.0, 0.0
    arguments = _FOUR_FLOATS
    if low != 0.0 or high != 1.0:
        _check_uniform(element, low, high)
        low32, high32 = as_float32(low), as_float32(high)
        values = 0, low32, high32 - low32, _rounded(high32, element), low32
    if element is dtypes.float64:
        values, arguments = (0, low, high - low, high), _THREE_DOUBLES
    run(_UNIFORM[element], generator, arguments, address, count, element.itemsize, *values)


def _check_uniform(element: dtype, low: float, high: float) -> None:
    largest = dtypes.FLOAT_FACTS[element][1]
    kind = _C_NAMES[element.name]
    given = f"uniform_({low}, {high}) of {element.name}"
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(helped(f"{name} is out of bounds for {kind}", given=given))
    if low > high:
        raise RuntimeError(
            helped(
                "uniform_ expects to return a [from, to) range, but found "
                f"from={low:g} > to={high:g}",
                given=given,
                fix=f"uniform_({high:g}, {low:g})",
            )
        )
    if high - low > largest:
        raise RuntimeError(
            helped(
                "uniform_ expects to-from <= std::numeric_limits<"
                f"{SCALAR_TYPE_NAMES[element.name]}>::max(), but found to={high:g} and "
                f"from={low:g} which result in to-from to exceed the limit",
                given=given,
            )
        )


def as_float32(value: float) -> float:
    """The nearest float32, infinite beyond its range."""
    return float(ctypes.c_float(value).value)


def _rounded(value: float, element: dtype) -> float:
    """A float32 rounded to a smaller format."""
    if element is dtypes.float16:
        try:
            return float(unpack("<e", pack("<e", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    if element is dtypes.bfloat16:
        (bits,) = unpack("<I", pack("<f", value))
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return float(unpack("<f", pack("<I", bits))[0])
    return value


def fill_normal(
    generator: Generator,
    address: int,
    count: int,
    element: dtype,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> None:
    """Normals: in blocks of sixteen from 16 contiguous elements on, else one at a time in double.

    Words: one at a time 4 a pair, using and leaving the cached normal. In blocks n + 16 * ragged
    in float32, twice that in float64, and n rounded down to blocks + 16 * ragged in the 16-bit
    formats, where ragged = (n % 16 != 0).
    """
    if not std >= 0.0:
        raise RuntimeError(
            helped(
                f"normal expects std >= 0.0, but found std {std:g}",
                given=f"mean {mean:g}, std {std:g}",
                expected="a standard deviation of zero or more",
            )
        )
    if element not in _BLOCKS:
        raise not_implemented("normal_kernel_cpu", element)
    if count < 16 or not contiguous:
        name, arguments = "normal", _TWO_DOUBLES
    else:
        name = _BLOCKS[element]
        arguments = _TWO_DOUBLES if element is dtypes.float64 else _TWO_FLOATS
        if arguments is _TWO_FLOATS:
            mean, std = as_float32(mean), as_float32(std)
    size, code = element.itemsize, CODES[element]
    run(name, generator, arguments, address, count, size, code, mean, std)


class Draw(NamedTuple):
    """Integers low + word mod n_values; the word is of 32 or 64 bits."""

    low: int
    n_values: int
    bits: int


@lru_cache(maxsize=256)
def random_bounds(element: dtype, low: int | None, high: int | None) -> Draw:
    """What random_() (None, None), random_(low, None) and random_(low, high) draw.

    Raises what torch raises for bounds that are empty or that the dtype cannot hold.
    """
    if element.is_complex:
        raise _no_integers(element, low, high)
    top = _top(element)
    if low is None:
        bits = 64 if element in (dtypes.int64, dtypes.float64) else 32
        return Draw(0, top + 1, bits)
    if high is None:
        if low == -(2**63):  # all words there are; as signed numbers they begin at -2^63
            return Draw(0, _whole_range(element), 64)
        high = top + 1
    elif low >= high:
        raise _empty_range(low, high)
    elif element.is_floating_point:
        _check_bounds(element, low, high)  # what is infinite in the dtype has no neighbours
        low, high = _shrunk(element, low, high)
    _check_bounds(element, low, high)
    return Draw(low, high - low, 32 if high - low < _TWO_WORDS_FROM else 64)


def _no_integers(element: dtype, low: int | None, high: int | None) -> Exception:
    """torch's error where complex numbers are asked for."""
    if low is None:
        return not_implemented("random_kernel_cpu", element)
    if high is None and low == -(2**63):
        return not_implemented("random_full_64_bits_range_kernel_cpu", element)
    if high is not None and low >= high:
        return _empty_range(low, high)
    where = "random_from_to_impl" if high is None else "check_random_bounds"
    return RuntimeError(f"{where} handles only integral, floating-point and boolean types")


def _empty_range(low: int, high: int) -> RuntimeError:
    return RuntimeError(
        helped(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}",
            expected="from < to: the largest value drawn is to - 1",
        )
    )


# random_() of an integer dtype draws below these; a float dtype draws 0 .. 2^digits.
_ALL_WORDS: Final = {
    "uint64": 2**64, "uint32": 2**32, "uint16": 2**16,
    "int64": 2**63, "int32": 2**31, "int16": 2**15, "int8": 2**7, "uint8": 2**8, "bool": 2,
}  # fmt: skip


def _digits(element: dtype) -> int:
    return dtypes.FLOAT_FACTS[element][0] + 1


def _top(element: dtype) -> int:
    """Largest integer drawn: all below it are exact too."""
    if element.is_floating_point:
        return int(2 ** _digits(element))
    return _ALL_WORDS[element.name] - 1


def _whole_range(element: dtype) -> int:
    if element.name in ("float16", "bool"):
        raise not_implemented("random_full_64_bits_range_kernel_cpu", element)
    if element.name not in ("int64", "float32", "float64", "bfloat16"):
        raise RuntimeError(
            "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
        )
    return 2**64


def _shrunk(element: dtype, low: int, high: int) -> tuple[int, int]:
    """Bounds of a float dtype, moved inward where rounding would reach beyond them."""
    digits = _digits(element)
    if _cast(low + 1, element) < low:
        exponent = abs(low + 1).bit_length() - 1
        low = int(_cast(low + 1, element)) + 2 ** (exponent - digits + 1)
    if _cast(high - 1, element) >= high:
        exponent = abs(high - 1).bit_length() - 1
        high = int(_cast(high - 1, element)) - 2 ** (exponent - digits + 1)
    return low, high


def _cast(value: int, element: dtype) -> float:
    """The integer as the dtype holds it."""
    if element is dtypes.float64:
        return float(value)
    return _rounded(as_float32(value), element)


def _check_bounds(element: dtype, low: int, high: int) -> None:
    """from and to - 1 must be values of the dtype."""
    if element.is_floating_point:
        largest = dtypes.FLOAT_FACTS[element][1]
        least = -largest
    else:
        largest = _ALL_WORDS[element.name] - 1
        least = -largest - 1 if element.is_signed and element is not dtypes.bool_ else 0
    kind = _C_NAMES[element.name]
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= largest:
            raise RuntimeError(
                helped(
                    f"{name} is out of bounds for {kind}",
                    given=f"from {low}, to {high}",
                    expected=f"values of {element.name}: {least} to {largest}",
                )
            )


def fill_integers(
    generator: Generator, address: int, count: int, element: dtype, draw: Draw
) -> None:
    """Integers cast to the dtype, one word each or two. `draw` comes from `random_bounds`."""
    code, low, n_values = CODES[element], draw.low % 2**64, draw.n_values
    if draw.bits == 32:
        # ceil(2^64 / n), which is 0 mod 2^64 for n = 1: then every remainder is 0, as it should.
        magic = (2**64 + n_values - 1) // n_values % 2**64
        name = "integers_narrow"
    else:
        magic = 2**64 // n_values
        name = "integers_wide"
    values = code, n_values % 2**64, magic, low
    run(name, generator, _THREE_INTEGERS, address, count, element.itemsize, *values)


def fill_permutation(generator: Generator, address: int, count: int) -> None:
    """0 .. count - 1 in random order, int64; count - 1 words (from 214,748,364 on: 2 * count)."""
    name = "permutation_narrow" if count < _PERMUTATION_WIDE_FROM else "permutation_wide"
    run(name, generator, _PLAIN, address, count, 0, 0)


def check_permutation(n: int, element: dtype) -> None:
    """randperm's checks of n against the result's dtype."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if element is dtypes.bool_ or element.is_complex:
        raise not_implemented("randperm", element)
    if element.is_floating_point:
        limit = 2 ** _digits(element) + 1
        if n > limit and element is not dtypes.bfloat16:  # torch does not look at that one
            text = "2049" if element is dtypes.float16 else f"2^{_digits(element)}+1"
            kind = SCALAR_TYPE_NAMES[element.name]
            raise RuntimeError(
                helped(f"n cannot be greater than {text} for {kind} type.", given=f"n {n}")
            )
    elif n > _ALL_WORDS[element.name]:
        raise RuntimeError(
            helped(
                f"value cannot be converted to type {element.name}_t without overflow",
                given=f"randperm({n}) of {element.name}",
                fix="dtype=torch.int64",
            )
        )


def fill_bernoulli(generator: Generator, address: int, count: int, chance: float) -> None:
    """Bytes 1 where u < chance, else 0; two words an element, whatever dtype they become."""
    if not 0.0 <= chance <= 1.0:
        raise RuntimeError(
            helped(
                f"bernoulli_ expects p to be in [0, 1], but got p={chance:g}",
                given=f"p {chance:g}",
                expected="a probability",
            )
        )
    bound = math.ceil(chance * 2.0**53)  # u53 < chance, both times 2^53
    run("bernoulli", generator, _ONE_INTEGER, address, count, 1, 0, bound)


def fill_bernoulli_each(
    generator: Generator, address: int, count: int, chances: int, element: dtype
) -> None:
    """Bytes 1 where u < chance of the same place. `chances` is the address of float64 (two words
    an element) or float32 (one word); the 16-bit formats come as float32.

    The caller checks the chances: torch's sentence is "Expected p_in >= 0 && p_in <= 1 to be
    true, but got false.".
    """
    name = f"bernoulli_each_{element.name}"
    run(name, generator, _ONE_INTEGER, address, count, 0, 0, chances)


def skip_words(generator: Generator, count: int) -> None:
    """Go on by `count` words without drawing anything."""
    run("skip", generator, _PLAIN, 0, count, 0, 0)


def draw_words(generator: Generator, count: int) -> tuple[int, ...]:
    """The next `count` outputs of 32 bits."""
    buffer = (ctypes.c_uint32 * (count + 8))()
    run("words", generator, _PLAIN, ctypes.addressof(buffer), count, 0, 0)
    return tuple(buffer[:count])


def draw_64_bits(generator: Generator) -> int:
    """r64: the next two outputs, high half first."""
    high, low = draw_words(generator, 2)
    return high << 32 | low
