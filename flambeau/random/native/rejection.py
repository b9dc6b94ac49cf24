"""Samplers that draw until they accept: Poisson, binomial, gamma, and Dirichlet from gammas.

Keeps     torch's tests in torch's order, in double; what torch holds in the tensor's dtype is
          rounded to it at the same places, so that the words used agree.
Touches   twister.py, normal.py, mathematics.py, convert.py, fill.py.
Not here  the checks of rates and probabilities (random/fills_sampled.py).
Source    Hoermann, PTRS and BTRS (1993); Marsaglia and Tsang, gamma variables (2000)."""

from __future__ import annotations

import math
from typing import Final

from flambeau.random.native.continuous import waiting_time
from flambeau.random.native.convert import in_runs, itemsize_of
from flambeau.random.native.fill import Fill
from flambeau.random.native.layout import DTYPE_CODES
from flambeau.random.native.mathematics import exp, log, log1p, power
from flambeau.random.native.writer import Function, Module, Value

# log(k!) for k = 0 .. 9, where Stirling's series is not yet exact.
_LOG_FACTORIALS: Final = (
    0.0, 0.0, 0.6931471805599453, 1.791759469228055, 3.1780538303479458, 4.787491742782046,
    6.579251212010101, 8.525161361065415, 10.60460290274525, 12.801827480081469,
)  # fmt: skip
_LOG_FACTORIAL_SERIES: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_HALF_LOG_TWO_PI: Final = 0.9189385332046727
# What Stirling's formula without series misses for k = 0 .. 9, as torch has it.
_STIRLING: Final = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
_THIRD: Final = float.fromhex("0x1.555556p-2")  # torch writes 1.0f / 3.0f
_SQUEEZE: Final = float.fromhex("0x1.0f27bcp-5")  # and 0.0331f
_TINY32: Final = 2.0**-126
_TINY64: Final = 2.0**-1022


def add_logarithms(module: Module) -> None:
    """Scalar functions that the samplers share."""
    f = module.function("log_of", ["double"], "double")
    f.give(log(f, f.parameters[0]))
    f = module.function("round_to_kind", ["double", "i1"], "double")
    value, is_float32 = f.parameters
    f.give(is_float32.choose(value.cast("fptrunc", "float").cast("fpext", "double"), value))


def _table_entry(f: Function, table: str, k: Value) -> Value:
    """Entry k of a table of ten; k is clamped into it."""
    inside = f.intrinsic("smax", f.minimum(k.cast("fptosi", "i64"), 9), 0)
    place = f.value("ptr", f"getelementptr i8, ptr @{table}, i64 {(inside << 3).text}")
    return f.load("double", place)


def add_log_factorial(module: Module) -> None:
    """log_factorial(k) of a whole double k >= 0."""
    f = module.function("log_factorial", ["double"], "double")
    (k,) = f.parameters
    exact = _table_entry(f, module.table("log_factorials", _LOG_FACTORIALS), k)
    n = k + 1.0
    inverse = 1.0 / n
    square = inverse * inverse
    series = f.constant("double", _LOG_FACTORIAL_SERIES[-1])
    for coefficient in reversed(_LOG_FACTORIAL_SERIES[:-1]):
        series = f.fma(series, square, coefficient)
    long = (n - 0.5) * f.call("log_of", n) - n + _HALF_LOG_TWO_PI + series * inverse
    f.give((k > 9.0).choose(long, exact))


def add_stirling(module: Module) -> None:
    """stirling(k): what Stirling's formula misses of log(k!)."""
    f = module.function("stirling", ["double"], "double")
    (k,) = f.parameters
    exact = _table_entry(f, module.table("stirling_errors", _STIRLING), k)
    n = k + 1.0
    square = n * n
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / n
    f.give((k > 9.0).choose(series, exact))


def poisson(fill: Fill) -> None:
    """Parameter: address of the rates, of the result's dtype."""
    f = fill.f
    (source,) = fill.parameters("ptr")
    rates = f.buffer(8 * 64)
    dtype = fill.dtype
    itemsize = itemsize_of(f, dtype)

    def generate(buffer: Value, run: Value, done: Value) -> None:
        f.call("load_doubles", f.at(source, done * itemsize), rates, run, dtype)
        with f.count(run) as i:
            rate = f.load("double", rates, i << 3)
            f.store(f.constant("double", 0.0), buffer, i << 3)
            with f.when((rate > 0.0) & (rate < 10.0)):
                f.store(f.call("poisson_small", fill.state, rate), buffer, i << 3)
            with f.when(rate >= 10.0):
                f.store(f.call("poisson_large", fill.state, rate), buffer, i << 3)

    in_runs(f, fill.count, fill.target, dtype, generate)


def add_poisson(module: Module) -> None:
    """poisson_small(state, rate), products of uniforms, and poisson_large, PTRS."""
    _add_poisson_large(module)
    f = module.function("poisson_small", ["ptr", "double"], "double")
    state, rate = f.parameters
    bound = exp(f, -rate)
    product, k = f.variable("double", 1.0), f.variable("double", -1.0)
    with f.forever() as loop:
        product.set(product.now * f.call("unit_double", state))
        k.set(k.now + 1.0)
        loop.leave_if(product.now <= bound)
    f.give(k.now)


def _add_poisson_large(module: Module) -> None:
    f = module.function("poisson_large", ["ptr", "double"], "double")
    state, rate = f.parameters
    b = f.sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 + -0.059
    bound = 0.9277 - 3.6224 / (b - 2.0)
    result = f.variable("double", 0.0)
    with f.forever() as loop:
        u = f.call("unit_double", state) - 0.5
        v = f.call("unit_double", state)
        us = 0.5 - f.intrinsic("fabs", u)
        k = f.floor(((a * 2.0) / us + b) * u + rate + 0.43)
        k = (k < 2.0**63).choose(k, -(2.0**63))  # a count is an int64 to torch
        result.set(k)
        loop.leave_if((us >= 0.07) & (v <= bound))
        loop.again_if((k < 0.0) | ((us < 0.013) & (v > us)))
        log_alpha = f.call("log_of", 1.1239 + 1.1328 / (b - 3.4))
        left = f.call("log_of", v) + log_alpha - f.call("log_of", a / (us * us) + b)
        right = k * f.call("log_of", rate) - rate - f.call("log_factorial", k)
        loop.leave_if(left <= right)
    f.give(result.now)


def binomial(fill: Fill) -> None:
    """Parameters: addresses of the counts and of the chances, of the result's dtype."""
    f = fill.f
    counts_source, chances_source = fill.parameters("ptr", "ptr")
    counts, chances = f.buffer(8 * 64), f.buffer(8 * 64)
    dtype = fill.dtype
    is_float32 = dtype.equal(DTYPE_CODES["float32"])
    itemsize = itemsize_of(f, dtype)

    def generate(buffer: Value, run: Value, done: Value) -> None:
        f.call("load_doubles", f.at(counts_source, done * itemsize), counts, run, dtype)
        f.call("load_doubles", f.at(chances_source, done * itemsize), chances, run, dtype)
        with f.count(run) as i:
            n, p = f.load("double", counts, i << 3), f.load("double", chances, i << 3)
            f.store(f.call("binomial_one", fill.state, n, p, is_float32), buffer, i << 3)

    in_runs(f, fill.count, fill.target, dtype, generate)


def add_binomial(module: Module) -> None:
    """binomial_one(state, n, p, is_float32), any p."""
    _add_binomial_inversion(module)
    _add_binomial_rejection(module)
    f = module.function("binomial_one", ["ptr", "double", "double", "i1"], "double")
    state, n, p, is_float32 = f.parameters
    result = f.variable("double", 0.0)
    with f.when((n > 0.0) & (p >= 1.0)):
        result.set(n)
    with f.when(n.differs(n) | ((n > 0.0) & p.differs(p))):
        result.set(float("nan"))
    inside = (n > 0.0) & (p > 0.0) & (p < 1.0)
    with f.when(inside):
        flipped = p > 0.5
        other = f.call("round_to_kind", 1.0 - p, is_float32)
        chance = flipped.choose(other, p)
        spread = f.call("round_to_kind", n * chance, is_float32)
        drawn = f.variable("double", 0.0)
        with f.when(spread < 10.0):
            drawn.set(f.call("binomial_inversion", state, n, chance))
        with f.when(spread >= 10.0):
            drawn.set(f.call("binomial_rejection", state, n, chance, is_float32))
        result.set(flipped.choose(n - drawn.now, drawn.now))
    f.give(result.now)


def _add_binomial_inversion(module: Module) -> None:
    f = module.function("binomial_inversion", ["ptr", "double", "double"], "double")
    state, n, p = f.parameters
    divisor = log1p(f, -p)
    k, trials = f.variable("double", -1.0), f.variable("double", 0.0)
    with f.forever() as loop:
        waited = f.intrinsic("ceil", f.call("log_of", f.call("unit_double", state)) / divisor)
        trials.set(trials.now + waited)
        k.set(k.now + 1.0)
        loop.leave_if(trials.now > n)
    f.give(k.now)


def _add_binomial_rejection(module: Module) -> None:
    f = module.function("binomial_rejection", ["ptr", "double", "double", "i1"], "double")
    state, n, p, is_float32 = f.parameters

    def rounded(value: Value) -> Value:
        return f.call("round_to_kind", value, is_float32)

    def log_of(value: Value) -> Value:
        return f.call("log_of", value)

    def missed(value: Value) -> Value:
        return f.call("stirling", value)

    other = rounded(1.0 - p)
    product = rounded(n * p)
    sd = f.sqrt(rounded(product * other))
    ratio = rounded(p / other)
    b = sd * 2.53 + 1.15
    a = b * 0.0248 + -0.0873 + p * 0.01
    alpha = (2.83 + 5.1 / b) * sd
    bound = 0.92 - 4.2 / b
    m = f.floor(rounded(rounded(n + 1.0) * p))
    result = f.variable("double", 0.0)
    with f.forever() as loop:
        u = f.call("unit_double", state) - 0.5
        v = f.call("unit_double", state)
        us = 0.5 - f.intrinsic("fabs", u)
        k = f.floor(((a * 2.0) / us + b) * u + product + 0.5)
        result.set(k)
        loop.again_if((k < 0.0) | (k > n))
        loop.leave_if((us >= 0.07) & (v <= bound))
        left = log_of((v * alpha) / (a / (us * us) + b))
        right = (
            (m + 0.5) * log_of((m + 1.0) / (ratio * (n - m + 1.0)))
            + (n + 1.0) * log_of((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * log_of(ratio * (n - k + 1.0) / (k + 1.0))
            + missed(m) + missed(n - m) - missed(k) - missed(n - k)
        )  # fmt: skip
        loop.leave_if(left <= right)
    f.give(result.now)


def gamma(fill: Fill) -> None:
    """Parameter: address of the shapes, of the result's dtype (float32 or float64)."""
    f = fill.f
    (source,) = fill.parameters("ptr")
    shapes = f.buffer(8 * 64)
    dtype = fill.dtype
    is_float32 = dtype.equal(DTYPE_CODES["float32"])
    tiny = is_float32.choose(f.constant("double", _TINY32), _TINY64)
    itemsize = itemsize_of(f, dtype)

    def generate(buffer: Value, run: Value, done: Value) -> None:
        f.call("load_doubles", f.at(source, done * itemsize), shapes, run, dtype)
        with f.count(run) as i:
            shape = f.load("double", shapes, i << 3)
            value = f.call("gamma_one", fill.state, shape, is_float32)
            value = f.call("round_to_kind", value, is_float32)
            f.store((value >= tiny).choose(value, tiny), buffer, i << 3)  # of NaN, too

    in_runs(f, fill.count, fill.target, dtype, generate)


def add_gamma(module: Module) -> None:
    """gamma_one(state, shape, is_float32): Marsaglia and Tsang, before rounding to the dtype."""
    f = module.function("gamma_one", ["ptr", "double", "i1"], "double")
    state, shape, is_float32 = f.parameters

    def rounded(value: Value) -> Value:
        return f.call("round_to_kind", value, is_float32)

    scale, alpha = f.variable("double", 1.0), f.variable("double", shape)
    result = f.variable("double", 0.0)
    with f.when(shape < 1.0):
        chance = 1.0 - f.call("unit_double", state)
        scale.set(power(f, chance, rounded(1.0 / shape)))
        alpha.set(rounded(shape + 1.0))
    with f.when(shape.equal(0.0)):
        scale.set(0.0)  # a power with an infinite exponent
    d = rounded(alpha.now - _THIRD)
    c = 1.0 / f.sqrt(d * 9.0)
    with f.forever() as loop:
        x = f.call("one_normal", state)
        y = 1.0 + c * x
        loop.again_if(y <= 0.0)
        v = y * y * y
        u = 1.0 - f.call("unit_double", state)
        xx = x * x
        result.set(scale.now * d * v)
        loop.leave_if(u < 1.0 - xx * _SQUEEZE * xx)
        accepted = xx * 0.5 + d * (1.0 - v + f.call("log_of", v))
        loop.leave_if(f.call("log_of", u) < accepted)
    f.give(result.now)


def dirichlet(fill: Fill) -> None:
    """Parameters: address of the shapes, row length, address of a row of doubles.

    Gammas in double, divided by their row's sum, kept within [tiny, 1 - epsilon / 2].
    """
    f = fill.f
    source, length, row = fill.parameters("ptr", "i64", "ptr")
    dtype = fill.dtype
    is_float32 = dtype.equal(DTYPE_CODES["float32"])
    tiny = is_float32.choose(f.constant("double", _TINY32), _TINY64)
    top = is_float32.choose(f.constant("double", 1 - 2.0**-24), 1 - 2.0**-53)
    itemsize = itemsize_of(f, dtype)
    never = f.value("i1", "icmp eq i1 true, false")
    with f.count(fill.count / length) as r:
        first = r * length * itemsize
        f.call("load_doubles", f.at(source, first), row, length, dtype)
        with f.count(length) as i:
            shape = f.load("double", row, i << 3)
            value = f.call("gamma_one", fill.state, shape, never)
            value = (value < _TINY64).choose(_TINY64, value)
            f.store(value, row, i << 3)
        total = _row_sum(f, row, length)
        with f.count(length) as i:
            value = f.call("round_to_kind", f.load("double", row, i << 3) / total, is_float32)
            value = (value < tiny).choose(tiny, value)
            f.store((value > top).choose(top, value), row, i << 3)
        f.call("store_doubles", row, f.at(fill.target, first), length, dtype)


def _row_sum(f: Function, row: Value, length: Value) -> Value:
    """Sum of a row in torch's order: four vectors of four, the rest, then the lanes."""
    lanes = "<4 x double>"
    sums = f.buffer(4 * 32)
    for offset in range(0, 128, 32):
        f.store(f.constant(lanes, 0.0), sums, offset)
    in_vectors, in_fours = length & ~3, length & ~15
    with f.count(in_fours, 16) as i:
        for offset in range(0, 128, 32):
            added = f.load(lanes, sums, offset) + f.load(lanes, row, (i << 3) + offset)
            f.store(added, sums, offset)
    with f.count(in_vectors - in_fours, 4) as i:
        f.store(f.load(lanes, sums) + f.load(lanes, row, (in_fours + i) << 3), sums)
    together = f.load(lanes, sums)
    for offset in range(32, 128, 32):
        together = together + f.load(lanes, sums, offset)
    f.store(together, sums)
    total = f.variable("double", 0.0)
    with f.count(length - in_vectors) as i:
        total.set(total.now + f.load("double", row, (in_vectors + i) << 3))
    for lane in range(4):
        total.set(total.now + f.load("double", sums, 8 * lane))
    return total.now


def multinomial(fill: Fill) -> None:
    """With replacement: the first category whose running share reaches a uniform.

    Parameters: address of the weights (float32 or float64), categories, draws a row, address of a
    row of doubles. The running sum is held in the weights' dtype. count = rows * draws.
    """
    f = fill.f
    source, categories, draws, row = fill.parameters("ptr", "i64", "i64", "ptr")
    dtype = fill.dtype
    is_float32 = dtype.equal(DTYPE_CODES["float32"])
    itemsize = itemsize_of(f, dtype)
    with f.count(fill.count / draws) as r:
        weights = f.at(source, r * categories * itemsize)
        f.call("load_doubles", weights, row, categories, dtype)
        total = f.variable("double", 0.0)
        with f.count(categories) as i:
            weight = f.load("double", row, i << 3)
            total.set(f.call("round_to_kind", total.now + weight, is_float32))
            f.store(total.now, row, i << 3)
        with f.count(categories) as i:
            share = f.load("double", row, i << 3) / total.now
            f.store(f.call("round_to_kind", share, is_float32), row, i << 3)
        f.store(f.constant("double", 1.0), row, (categories - 1) << 3)
        with f.count(draws) as k:
            found = _first_reaching(f, row, categories, f.call("unit_double", fill.state))
            f.store(found, fill.target, (r * draws + k) << 3)


def multinomial_once(fill: Fill) -> None:
    """One category a row: the largest quotient of its weight and a waiting time, NaN above all.

    Parameters: address of the weights (float32 or float64), categories, addresses of two rows of
    doubles. Where the weights are none nothing is drawn and the first result is -1 for one below
    zero, infinite or NaN, -2 for a row without any. count = rows.
    """
    f = fill.f
    source, categories, row, draws = fill.parameters("ptr", "i64", "ptr", "ptr")
    dtype = fill.dtype
    is_float32 = dtype.equal(DTYPE_CODES["float32"])
    row_bytes = categories * itemsize_of(f, dtype)
    fault = f.variable("i64", 0)
    with f.count(fill.count) as r:
        f.call("load_doubles", f.at(source, r * row_bytes), row, categories, dtype)
        largest = f.variable("double", 0.0)
        with f.count(categories) as i:
            weight = f.load("double", row, i << 3)
            is_weight = (weight >= 0.0) & (weight < math.inf)
            fault.set(is_weight.choose(fault.now, -1))
            largest.set((weight > largest.now).choose(weight, largest.now))
        is_empty = largest.now.equal(0.0) & fault.now.equal(0)
        fault.set(is_empty.choose(-2, fault.now))
    with f.when(fault.now.differs(0)):
        f.store(fault.now, fill.target)
    with f.when(fault.now.equal(0)), f.count(fill.count) as r:
        f.call("load_doubles", f.at(source, r * row_bytes), row, categories, dtype)
        f.call("unit_many", fill.state, draws, categories)
        with f.count(categories, 4) as i:
            f.store(waiting_time(f, f.load("<4 x double>", draws, i << 3), -1.0), draws, i << 3)
        found, best = f.variable("i64", 0), f.variable("double", -1.0)
        with f.count(categories) as i:
            drawn = f.call("round_to_kind", f.load("double", draws, i << 3), is_float32)
            quotient = f.load("double", row, i << 3) / drawn
            share = f.call("round_to_kind", quotient, is_float32)
            is_better = (share > best.now) | (share.differs(share) & best.now.equal(best.now))
            found.set(is_better.choose(i, found.now))
            best.set(is_better.choose(share, best.now))
        f.store(found.now, fill.target, r << 3)


def _first_reaching(f: Function, row: Value, length: Value, wanted: Value) -> Value:
    """Binary search: first index whose entry is not below `wanted`."""
    low, high = f.variable("i64", 0), f.variable("i64", length)
    with f.forever() as loop:
        loop.leave_if(low.now >= high.now)
        middle = low.now + ((high.now - low.now) >> 1)
        is_below = f.load("double", row, middle << 3) < wanted
        low.set(is_below.choose(middle + 1, low.now))
        high.set(is_below.choose(high.now, middle))
    return low.now
