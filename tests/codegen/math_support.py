"""Runs a formula natively over NumPy arrays, and measures math words in ulp by mpmath."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen import nest_text
from flambeau.codegen.exact_reader import exact_value, ulp_error
from flambeau.codegen.loops import Access, Nest, Phase, Store
from flambeau.codegen.vocabulary import BUILDER
from flambeau.devices.cpu import features, jit

NUMPY: dict[dtype, Any] = {dtypes.float32: np.float32, dtypes.float64: np.float64}
KINDS = (dtypes.float32, dtypes.float64)
BLOCK = 4096
SLACK = 512  # bytes a kernel may read behind the end


def run(formula: Callable[..., Any], of: dtype, *inputs: Any, vector_bits: int = 256) -> np.ndarray:
    """formula(k, *inputs) for every element, through a compiled loop nest."""
    loads = [BUILDER.apply("load", (), of, i) for i in range(len(inputs))]
    access = Access(of)
    nest = Nest(
        kind="rows",
        n_outer=0,
        accesses=(access,) * (len(inputs) + 1),
        phases=(Phase((Store(len(inputs), formula(BUILDER, *loads)),)),),
    )
    name = nest_text.kernel_name(nest, vector_bits)
    text = nest_text.kernel_text(nest, vector_bits, name, features.has_avx512())
    signature = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    kernel = ctypes.CFUNCTYPE(None, *signature)(jit.compile_functions({name: text})[name])
    count = max(np.size(each) for each in inputs)
    arrays = []
    for each in (*inputs, 0.0):
        padded = np.zeros(count + SLACK, NUMPY[of])
        padded[:count] = each
        arrays.append(padded)
    numbers = {"inner_size": count, "inner_block": BLOCK}
    words = [
        numbers[name] if name in numbers else arrays[int(name.split(".")[1])].ctypes.data
        for name in nest.argument_names
    ]
    arguments = (ctypes.c_int64 * len(words))(*words)
    scratch = np.zeros(1 << 16, np.uint8)
    kernel(ctypes.addressof(arguments), 0, -(-count // BLOCK), scratch.ctypes.data)
    return arrays[-1][:count]


def word(name: str, of: dtype, *inputs: Any, vector_bits: int = 256) -> np.ndarray:
    """A math word natively over arrays."""
    formula = lambda k, *operands: getattr(k, name)(*operands)  # noqa: E731
    return run(formula, of, *inputs, vector_bits=vector_bits)


def exact(name: str, of: dtype, *operands: float) -> Any:
    """A math word in real arithmetic."""
    return exact_value(lambda k, *each: getattr(k, name)(*each), of, operands)


def worst_ulp(name: str, of: dtype, *inputs: Any) -> tuple[float, tuple[float, ...]]:
    """Largest error of a math word in ulp, and the operands where it occurs."""
    rounded = [np.asarray(each, NUMPY[of]) for each in inputs]
    measured = word(name, of, *rounded).tolist()
    worst, where = 0.0, ()
    for answer, *operands in zip(measured, *(each.tolist() for each in rounded), strict=True):
        error = ulp_error(answer, exact(name, of, *operands), of)
        if error > worst:
            worst, where = error, tuple(operands)
    return worst, where


def special_values(of: dtype) -> np.ndarray:
    """Zeros, infinities, NaN, ones, denormals, the largest, and neighbours of small integers."""
    kind = NUMPY[of]
    facts = np.finfo(kind)
    positive = [0.0, facts.smallest_subnormal, 3 * facts.smallest_subnormal, facts.tiny,
                np.nextafter(facts.tiny, kind(0)), facts.eps, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0,
                1e4, facts.max, math.inf]  # fmt: skip
    for whole in (1.0, 2.0):
        positive += [np.nextafter(kind(whole), kind(0)), np.nextafter(kind(whole), kind(9))]
    both = np.array(positive, kind)
    return np.concatenate([both, -both, np.array([math.nan], kind)])


def spread(of: dtype, *ranges: tuple[float, float], count: int = 120, seed: int = 1) -> np.ndarray:
    """Random numbers, uniform in each range and uniform in their exponents up to its ends."""
    random = np.random.default_rng(seed)
    parts: list[np.ndarray] = []
    for low, high in ranges:
        share = random.uniform(0, 1, count)
        parts.append(low * share + high * (1 - share))
        size = max(abs(low), abs(high))
        steep = size * 2.0 ** -random.uniform(0, 40, count // 2)
        parts.append(np.clip(steep * (1 if high > 0 else -1), low, high))
    return np.concatenate(parts).astype(NUMPY[of])


def describe(failures: Iterable[tuple[Any, ...]]) -> str:
    """Failures one a line, with the operands as hex so that they can be typed in again."""
    return "\n".join(
        " ".join(each.hex() if isinstance(each, float) else str(each) for each in line)
        for line in failures
    )
