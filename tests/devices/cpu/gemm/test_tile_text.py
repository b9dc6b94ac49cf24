"""Tiles keep their sums in registers: nothing in the loop along k touches the stack."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from flambeau.base import dtypes
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.gemm.elements import Element
from flambeau.devices.cpu.gemm.grid import TILES
from flambeau.devices.cpu.gemm.product_text import ProductClass, product_kernel
from flambeau.devices.cpu.jit import compiler

CPUS = {256: "znver1", 512: "skylake-avx512"}  # one with each width, whatever this machine is


def tiles(vector_bits):
    by_vectors, by_rows = TILES[vector_bits]
    return sorted({*by_vectors.values(), *by_rows.items()})


def loops_along_k(text, cpu, opcode):
    """Assembly of the blocks that branch to themselves and hold the opcode."""
    compiler.initialise()
    machine = llvm.Target.from_triple(compiler.TRIPLE).create_target_machine(
        cpu=cpu, opt=1, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(f'target triple = "{compiler.TRIPLE}"\n{text}')
    assembly = machine.emit_assembly(module)
    blocks = re.split(r"\n(?=\.LBB)", assembly)
    loops = []
    for block in blocks:
        label = block.split(":")[0]
        end = re.search(rf"\tj\w+\t{re.escape(label)}(?:\n|$)", block)
        if end and opcode in block[: end.end()]:
            loops.append(block[: end.end()])
    return loops


@pytest.mark.parametrize("kind", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize(
    ("vector_bits", "tile"), [(bits, tile) for bits in CPUS for tile in tiles(bits)], ids=str
)
def test_sums_stay_in_registers(vector_bits, tile, kind):
    rows, vectors = tile
    shape = ProductClass(kind, vector_bits, rows, vectors, vectors, "", "", True, 0)
    (loop,) = loops_along_k(jit.text_of(product_kernel(shape)[1]), CPUS[vector_bits], "vfmadd")
    assert loop.count("vfmadd") == rows * vectors
    assert "(%rsp" not in loop
    registers = "zmm" if vector_bits == 512 else "ymm"
    assert len(set(re.findall(rf"%{registers}\d+", loop))) <= (32 if vector_bits == 512 else 16)


def test_texts_are_one_class():
    """Equal classes have equal names; anything the text depends on changes the name."""
    shape = ProductClass(dtypes.float32, 256, 6, 2, 2, "", "", True, 0)
    other = ProductClass(dtypes.float32, 256, 6, 2, 1, "", "", True, 0)
    assert product_kernel(shape)[0] != product_kernel(other)[0]
    assert product_kernel(shape)[0] in jit.text_of(product_kernel(shape)[1])
    assert Element(dtypes.bfloat16, 512).lanes == 16
    assert Element(dtypes.int64, 256).lanes == 4
