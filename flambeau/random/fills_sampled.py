"""Draws into memory from the other distributions.

Keeps     as fills.py. Arithmetic is in double where torch's is; results are torch's, bit for bit.
Touches   kernels.py, fills.py.
Not here  checks that need the values of an input tensor: torch's sentences are quoted below.

    exponential_(r)                 fill_exponential                    2 words an element
    geometric_(p)                   fill_geometric                      2 words
    cauchy_(m, s)                   fill_cauchy                         2 words
    log_normal_(m, s)               fill_log_normal                     as one-at-a-time normals
    poisson(L)                      fill_poisson     "invalid Poisson rate, expected rate to be
                                                     non-negative"
    binomial(n, p)                  fill_binomial, n and p broadcast and of one dtype
    _standard_gamma(A)              fill_gamma
    _sample_dirichlet(A)            fill_dirichlet, rows along the last dimension
    multinomial(P, k, True), k > 1  fill_multinomial; P float64, else as float32
    multinomial(P, k, False)        fill_exponential(1) of P's shape and strides in its dtype; then
                                    P / q and topk(k)
    multinomial(P, 1, either)       the same with argmax; fill_multinomial_once for a contiguous P
    gumbel_softmax                  fill_exponential(1) contiguous, then -log
    rrelu (training)                fill_rrelu_noise: only elements <= 0 draw"""

from __future__ import annotations

import ctypes
from struct import Struct
from typing import Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.random.fills import CODES, as_float32, not_implemented
from flambeau.random.generator import Generator
from flambeau.random.kernels import run, run_from

_ONE_DOUBLE: Final = Struct("<QQqqd")
_TWO_DOUBLES: Final = Struct("<QQqqdd")
_ONE_ADDRESS: Final = Struct("<QQqqQ")
_TWO_ADDRESSES: Final = Struct("<QQqqQQ")
_ADDRESS_COUNT_ADDRESS: Final = Struct("<QQqqQqQ")
_ADDRESS_COUNT_ADDRESSES: Final = Struct("<QQqqQqQQ")
_ADDRESS_COUNTS_ADDRESS: Final = Struct("<QQqqQqqQ")
_ADDRESS_DOUBLES: Final = Struct("<QQqqQdd")
_WIDE: Final = (dtypes.float32, dtypes.float64)


def fill_exponential(
    generator: Generator, address: int, count: int, element: dtype, rate: float = 1.0
) -> None:
    """Waiting times of a rate."""
    if not rate > 0.0:
        raise RuntimeError(helped(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}"))
    if not element.is_floating_point:
        raise _must_be_floating("Exponential", element)
    values = CODES[element], -1.0 / rate
    run("exponential", generator, _ONE_DOUBLE, address, count, element.itemsize, *values)


def _must_be_floating(distribution: str, element: dtype) -> RuntimeError:
    kind = "int" if element is dtypes.int32 else element.name
    return RuntimeError(
        helped(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {kind}"
        )
    )


def fill_geometric(
    generator: Generator, address: int, count: int, element: dtype, chance: float
) -> None:
    """Number of the first success; integer dtypes too."""
    if not 0.0 < chance < 1.0:
        raise RuntimeError(helped(f"geometric_ expects p to be in (0, 1), but got p={chance:g}"))
    if element is dtypes.bool_ or element.is_complex:
        raise not_implemented("geometric_cpu", element)
    values = CODES[element], chance
    run("geometric", generator, _ONE_DOUBLE, address, count, element.itemsize, *values)


def fill_cauchy(
    generator: Generator,
    address: int,
    count: int,
    element: dtype,
    median: float = 0.0,
    sigma: float = 1.0,
) -> None:
    """Cauchy's distribution; 16-bit formats reach infinity."""
    if not sigma > 0.0:
        raise RuntimeError(helped(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}"))
    if not element.is_floating_point:
        raise _must_be_floating("Cauchy", element)
    values = CODES[element], median, sigma
    run("cauchy", generator, _TWO_DOUBLES, address, count, element.itemsize, *values)


def fill_log_normal(
    generator: Generator,
    address: int,
    count: int,
    element: dtype,
    mean: float = 1.0,
    std: float = 2.0,
) -> None:
    """e to the power of normals drawn one at a time, whatever the count."""
    if not std > 0.0:
        raise RuntimeError(helped(f"log_normal_ expects std > 0.0, but found std={std:g}"))
    if not element.is_floating_point:
        raise not_implemented("log_normal_cpu", element)
    values = CODES[element], mean, std
    run("log_normal", generator, _TWO_DOUBLES, address, count, element.itemsize, *values)


def fill_poisson(
    generator: Generator, address: int, count: int, element: dtype, rates: int
) -> None:
    """Counts for the rates at address `rates`, of the same dtype; a rate of 0 draws nothing."""
    if not element.is_floating_point:
        raise not_implemented("poisson_cpu", element)
    size, code = element.itemsize, CODES[element]
    run_from("poisson", generator, _ONE_ADDRESS, (address, rates), count, size, code)


def fill_binomial(
    generator: Generator, address: int, count: int, element: dtype, counts: int, chances: int
) -> None:
    """Successes among `counts` trials of `chances`, addresses of values of the same dtype."""
    if element not in _WIDE:
        raise not_implemented("binomial_cpu", element)
    size, code = element.itemsize, CODES[element]
    addresses = address, counts, chances
    run_from("binomial", generator, _TWO_ADDRESSES, addresses, count, size, code)


def fill_gamma(generator: Generator, address: int, count: int, element: dtype, shapes: int) -> None:
    """Gamma variables of the shapes at address `shapes`; uses and leaves the cached normal."""
    if element not in _WIDE:
        raise not_implemented("gamma_cpu", element)
    size, code = element.itemsize, CODES[element]
    run_from("gamma", generator, _ONE_ADDRESS, (address, shapes), count, size, code)


def _row(length: int) -> ctypes.Array[ctypes.c_double]:
    """Scratch for a row; vectors may run past its end."""
    return (ctypes.c_double * (length + 8))()


def fill_dirichlet(
    generator: Generator, address: int, rows: int, length: int, element: dtype, shapes: int
) -> None:
    """Rows of shares that sum to one."""
    if element not in _WIDE:
        raise not_implemented("dirichlet", element)
    if rows * length == 0:
        return
    row = _row(length)
    values = (CODES[element], shapes, length, ctypes.addressof(row))
    run("dirichlet", generator, _ADDRESS_COUNT_ADDRESS, address, rows * length, 0, *values)


def fill_multinomial(
    generator: Generator,
    address: int,
    rows: int,
    categories: int,
    draws: int,
    element: dtype,
    weights: int,
) -> None:
    """Categories as int64, `draws` for each row of weights (float32 or float64), with replacement.

    The caller checks the weights: "invalid multinomial distribution (encountering probability
    entry < 0)" for entries below zero, infinite or NaN, then "invalid multinomial distribution
    (sum of probabilities <= 0)" for empty rows.
    """
    if rows * draws == 0:
        return
    row = _row(categories)
    values = (CODES[element], weights, categories, draws, ctypes.addressof(row))
    run("multinomial", generator, _ADDRESS_COUNTS_ADDRESS, address, rows * draws, 0, *values)


def fill_multinomial_once(
    generator: Generator, address: int, rows: int, categories: int, element: dtype, weights: int
) -> None:
    """A category as int64 for each row of weights (float32 or float64). Where they are no weights
    nothing is drawn, and the first category is -1 or -2: the sentences of `fill_multinomial`."""
    row = _row(2 * categories + 8)
    start = ctypes.addressof(row)
    values = (CODES[element], weights, categories, start, start + 8 * (categories + 8))
    run("multinomial_once", generator, _ADDRESS_COUNT_ADDRESSES, address, rows, 0, *values)


def fill_rrelu_noise(
    generator: Generator,
    address: int,
    count: int,
    element: dtype,
    inputs: int,
    lower: float,
    upper: float,
) -> None:
    """Slopes for the inputs at address `inputs`: 1 above zero, else a draw (two words)."""
    if not element.is_floating_point or element is dtypes.float16:
        raise not_implemented("rrelu_with_noise_out_cpu", element)
    if element is not dtypes.float64:
        lower, upper = as_float32(lower), as_float32(upper)
    size, code = element.itemsize, CODES[element]
    addresses = address, inputs
    run_from("rrelu_noise", generator, _ADDRESS_DOUBLES, addresses, count, size, code, lower, upper)
