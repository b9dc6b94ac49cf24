"""A map on the blocks of C gives the bits of the map after the product."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_support import BoundPlan, expected, from_float, padded, plan_of, same_bits, to_float

from flambeau.base import dtypes
from flambeau.codegen.loops import Access, Nest, Phase, Store
from flambeau.codegen.nest_text import kernel_name, kernel_text
from flambeau.codegen.vocabulary import BUILDER as k
from flambeau.codegen.vocabulary import expression
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.gemm import Epilogue, Operand, Pointer, plan, plan_product


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def bias_and_relu(kind):
    """relu(product + bias) + residual; the bias does not change along rows."""
    product, bias, residual = (expression("load", (), kind, i) for i in range(3))
    compute = kind.compute
    total = k.add(k.convert(product, compute), k.convert(bias, compute))
    rounded = k.convert(k.convert(k.max(total, 0.0), kind), compute)
    result = k.convert(k.add(rounded, k.convert(residual, compute)), kind)
    accesses = tuple(Access(kind) for _ in range(4))
    return Nest("rows", 1, accesses, (Phase((Store(3, result),)),))


def epilogue_of(kind, shape, is_c_kept):
    """The map's words: sizes, then pointer and row stride of C, bias, residual and result."""
    size = kind.itemsize
    row = shape[-1] * size
    batch = tuple(size * int(np.prod(shape[d + 1 :])) for d in range(len(shape) - 2))
    none = (0,) * len(batch)
    words = (0, 0, 0, 0, 0, Operand("bias"), 0, Operand("residual"), row, Operand("result"), row)
    pointers = (
        Pointer(5, none, 0, size), Pointer(7, batch, row, size), Pointer(9, batch, row, size)
    )  # fmt: skip
    return Epilogue(words, 3, pointers, is_c_kept)


def check(rng, shape_a, shape_b, kind=dtypes.float32, is_c_kept=False, bits=256, threads=2):
    nest = bias_and_relu(kind)
    name = kernel_name(nest, bits)
    address = jit.compile_functions({name: kernel_text(nest, bits, name)})[name]
    shape = (*np.broadcast_shapes(shape_a[:-2], shape_b[:-2]), shape_a[-2], shape_b[-1])
    a, b, bias, residual, result, c = (
        padded(each, kind) for each in (shape_a, shape_b, shape[-1:], shape, shape, shape)
    )
    for each in (a, b, bias, residual):
        each[...] = from_float(rng.standard_normal(each.shape).astype(kind.compute.name), kind)
    made = plan_of(a, b, c, kind, bits, threads, epilogue_of(kind, shape, is_c_kept))
    bound = BoundPlan(
        made, a, b, c, epilogue=address, bias=bias.ctypes.data, residual=residual.ctypes.data,
        result=result.ctypes.data,
    )  # fmt: skip
    bound.run(chunk=1, backwards=True)
    product = expected(a, b, kind)
    relu = np.maximum(to_float(product, kind) + to_float(bias, kind), 0)
    right = from_float(to_float(from_float(relu, kind), kind) + to_float(residual, kind), kind)
    assert same_bits(result, right)
    assert same_bits(c, product if is_c_kept else np.zeros_like(c))
    return made


@pytest.mark.parametrize("is_c_kept", [False, True])
@pytest.mark.parametrize("bits", [256, 512])
def test_sizes(rng, bits, is_c_kept):
    for shape_a, shape_b in (
        ((7, 9), (9, 19)), ((64, 70), (70, 96)), ((40, 1700), (1700, 90)), ((1, 300), (300, 1100)),
        ((1, 8), (8, 3)), ((300, 5), (5, 1)), ((30, 0), (0, 30)),
    ):  # fmt: skip
        check(rng, shape_a, shape_b, is_c_kept=is_c_kept, bits=bits)


@pytest.mark.parametrize("kind", [dtypes.float64, dtypes.float16, dtypes.bfloat16], ids=str)
def test_dtypes(rng, kind):
    check(rng, (33, 40), (40, 50), kind)
    check(rng, (1, 40), (40, 50), kind)


def test_batches(rng):
    """Merged into rows where the bias allows it, else an entry at a time."""
    made = check(rng, (4, 8, 20), (20, 40))
    assert len(made.steps) == 1
    check(rng, (4, 8, 20), (4, 20, 40), is_c_kept=True)
    check(rng, (2, 1, 8, 20), (3, 20, 40))
    check(rng, (5, 1, 20), (20, 40))


def test_halves(rng, monkeypatch):
    """A product cut for the sake of its workspace moves the map's pointers along."""
    monkeypatch.setattr(plan, "MAX_PACKED_BYTES", 20_000)
    plan_product.cache_clear()
    assert len(check(rng, (230, 70), (70, 1300)).steps) > 1
    assert len(check(rng, (230, 70), (70, 300), dtypes.float16).steps) > 3
    plan_product.cache_clear()


def test_strided_columns_are_refused():
    strides = (0, 4, 40), (0, 40, 4), (0, 4, 40)
    made = Epilogue((0, 0, 0, 0, 0), 3, (), is_c_kept=True)
    with pytest.raises(ValueError, match="contiguous columns"):
        plan_product(dtypes.float32, 1, 10, 10, 10, *strides, 256, 1, made)
