"""How fills are called: in pieces, from threads, and their checks of what they are given."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.random import fills, fills_sampled, kernels
from flambeau.random.generator import Generator

F32 = dtypes.float32
COUNT = 64 * 5 + 7
RATES = (ctypes.c_float * (COUNT + 16))(*[20.0 + i % 5 for i in range(COUNT + 16)])
SOURCE = ctypes.addressof(RATES)
HALVES = (ctypes.c_float * (COUNT + 16))(*[0.5] * (COUNT + 16))
SLOPES = (ctypes.c_float * (COUNT + 16))(*[i % 3 - 1.0 for i in range(COUNT + 16)])
FILLS: dict[str, Callable[[Generator, int], None]] = {
    "uniform": lambda g, a: fills.fill_uniform(g, a, COUNT, F32, -1.0, 2.0),
    "normal blocks": lambda g, a: fills.fill_normal(g, a, COUNT, F32, 1.0, 2.0),
    "normal blocks float16": lambda g, a: fills.fill_normal(g, a, COUNT, dtypes.float16),
    "normal blocks float64": lambda g, a: fills.fill_normal(g, a, COUNT, dtypes.float64),
    "normal": lambda g, a: fills.fill_normal(g, a, COUNT, F32, contiguous=False),
    "bernoulli": lambda g, a: fills.fill_bernoulli(g, a, COUNT, 0.3),
    "integers": lambda g, a: fills.fill_integers(g, a, COUNT, dtypes.int16, fills.Draw(0, 9, 32)),
    "exponential": lambda g, a: fills_sampled.fill_exponential(g, a, COUNT, F32),
    "poisson": lambda g, a: fills_sampled.fill_poisson(g, a, COUNT, F32, SOURCE),
    "gamma": lambda g, a: fills_sampled.fill_gamma(g, a, COUNT, F32, SOURCE),
    "binomial": lambda g, a: fills_sampled.fill_binomial(
        g, a, COUNT, F32, SOURCE, ctypes.addressof(HALVES)
    ),
    "rrelu": lambda g, a: fills_sampled.fill_rrelu_noise(
        g, a, COUNT, F32, ctypes.addressof(SLOPES), 0.1, 0.3
    ),
}


def drawn(name: str, seed: int = 11) -> tuple[bytes, bytes]:
    """What the fill writes, and the state afterwards."""
    generator = Generator().manual_seed(seed)
    buffer = ctypes.create_string_buffer(8 * COUNT + 64)
    FILLS[name](generator, ctypes.addressof(buffer))
    return buffer.raw, generator.state_bytes()


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("piece", [16, 64, 160])
def test_pieces_change_nothing(name: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(name)
    monkeypatch.setattr(kernels, "PIECE_ELEMENTS", piece)
    calls = []
    short, long = kernels._kernels[kernel_of(name)]
    counted = lambda *given: (calls.append(1), short(*given))[1]  # noqa: E731
    monkeypatch.setitem(kernels._kernels, kernel_of(name), (counted, long))
    assert drawn(name) == whole
    assert len(calls) > 1


def kernel_of(name: str) -> str:
    special = {
        "uniform": "uniform_float32",
        "normal blocks": "normal_blocks_float32",
        "normal blocks float16": "normal_blocks_float16",
        "normal blocks float64": "normal_blocks_float64",
        "integers": "integers_narrow",
        "rrelu": "rrelu_noise",
    }
    return special.get(name, name)


def test_threads_share_a_generator_without_mixing_words() -> None:
    """Whole runs of the stream go to one thread or another: together they are the stream."""
    count, rounds = 5000, 40
    generator = Generator().manual_seed(17)
    found: list[tuple[int, ...]] = []

    def draw() -> None:
        for _ in range(rounds // 4):
            found.append(fills.draw_words(generator, count))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = fills.draw_words(Generator().manual_seed(17), count * rounds)
    assert sorted(found) == sorted(wanted[i : i + count] for i in range(0, count * rounds, count))


def refuses(error: type[Exception], says: str, fill: Callable[..., Any], *given: Any) -> None:
    """The fill raises before it draws."""
    generator = Generator().manual_seed(1)
    before = generator.state_bytes()
    with pytest.raises(error) as caught:
        fill(generator, 0, 4, *given)
    assert str(caught.value).startswith(says)
    assert generator.state_bytes() == before


NAN, INF = float("nan"), float("inf")
EMPTY = "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"
TOO_WIDE = (
    "uniform_ expects to-from <= std::numeric_limits<Float>::max(), but found to=3e+38 and "
    "from=-3e+38 which result in to-from to exceed the limit"
)
CONTINUOUS = (
    "Exponential distribution is a continuous probability distribution. "
    "dtype must be a floating point but you specified int"
)
REFUSALS: list[tuple[type[Exception], str, Callable[..., Any], tuple[Any, ...]]] = [
    (RuntimeError, "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
     fills.fill_uniform, (F32, 2, 1)),
    (RuntimeError, "to is out of bounds for float", fills.fill_uniform, (F32, 0, INF)),
    (RuntimeError, "from is out of bounds for float", fills.fill_uniform, (F32, NAN, 3)),
    (RuntimeError, "from is out of bounds for c10::Half", fills.fill_uniform,
     (dtypes.float16, -70000, 3)),
    (RuntimeError, TOO_WIDE,
     fills.fill_uniform, (F32, -3e38, 3e38)),
    (NotImplementedError, "\"check_uniform_bounds\" not implemented for 'Byte'",
     fills.fill_uniform, (dtypes.uint8,)),
    (NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'",
     fills.fill_normal, (dtypes.int64,)),
    (RuntimeError, "normal expects std >= 0.0, but found std -1", fills.fill_normal, (F32, 0, -1)),
    (RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=1.5",
     fills.fill_bernoulli, (1.5,)),
    (RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=nan",
     fills.fill_bernoulli, (NAN,)),
    (RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0",
     fills_sampled.fill_exponential, (F32, 0.0)),
    (RuntimeError, CONTINUOUS, fills_sampled.fill_exponential, (dtypes.int32,)),
    (RuntimeError, "geometric_ expects p to be in (0, 1), but got p=1",
     fills_sampled.fill_geometric, (F32, 1.0)),
    (NotImplementedError, "\"geometric_cpu\" not implemented for 'Bool'",
     fills_sampled.fill_geometric, (dtypes.bool_, 0.5)),
    (RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1",
     fills_sampled.fill_cauchy, (F32, 0.0, -1.0)),
    (RuntimeError, "log_normal_ expects std > 0.0, but found std=0",
     fills_sampled.fill_log_normal, (F32, 0.0, 0.0)),
    (NotImplementedError, "\"binomial_cpu\" not implemented for 'Half'",
     fills_sampled.fill_binomial, (dtypes.float16, 0, 0)),
    (NotImplementedError, "\"gamma_cpu\" not implemented for 'BFloat16'",
     fills_sampled.fill_gamma, (dtypes.bfloat16, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "says", "fill", "given"), REFUSALS)
def test_refusals(
    error: type[Exception], says: str, fill: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    refuses(error, says, fill, *given)


@pytest.mark.parametrize(
    ("element", "low", "high", "error", "says"),
    [
        (dtypes.int64, 5, 5, RuntimeError, EMPTY),
        (dtypes.uint8, 0, 300, RuntimeError, "to - 1 is out of bounds for unsigned char"),
        (dtypes.uint8, -1, 3, RuntimeError, "from is out of bounds for unsigned char"),
        (dtypes.bool_, 0, 3, RuntimeError, "to - 1 is out of bounds for bool"),
        (dtypes.int8, 128, None, RuntimeError, "from is out of bounds for signed char"),
        (dtypes.float16, 0, 100000, RuntimeError, "to - 1 is out of bounds for c10::Half"),
        (dtypes.complex64, None, None, NotImplementedError,
         "\"random_kernel_cpu\" not implemented for 'ComplexFloat'"),
        (dtypes.int32, -(2**63), None, RuntimeError,
         "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"),
    ],
)  # fmt: skip
def test_bounds_refused(
    element: dtype, low: int | None, high: int | None, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        fills.random_bounds(element, low, high)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("n", "element", "error", "says"),
    [
        (-1, dtypes.int64, RuntimeError, "Trying to create tensor with negative dimension -1"),
        (2050, dtypes.float16, RuntimeError, "n cannot be greater than 2049 for Half type."),
        (2**24 + 2, F32, RuntimeError, "n cannot be greater than 2^24+1 for Float type."),
        (300, dtypes.uint8, RuntimeError,
         "value cannot be converted to type uint8_t without overflow"),
        (3, dtypes.bool_, NotImplementedError, "\"randperm\" not implemented for 'Bool'"),
    ],
)  # fmt: skip
def test_permutations_refused(n: int, element: dtype, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        fills.check_permutation(n, element)
    assert str(caught.value).startswith(says)


def test_largest_permutations_allowed() -> None:
    for n, element in ((2049, dtypes.float16), (127, dtypes.int8), (255, dtypes.uint8)):
        fills.check_permutation(n, element)
