"""Plans of attention: units, scratch and words of the kernels.

Keeps     what follows from threads does not show in the bits.
Touches   config, features, steps.
Not here  the text (forward_text.py, backward_text.py), the operator (ops/rows/attention.py)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, Final

from flambeau.devices.cpu import features
from flambeau.devices.cpu.attention.backward_text import (
    BACKWARD_OPERANDS,
    BACKWARD_WORDS,
    backward_kernel,
)
from flambeau.devices.cpu.attention.blocks_text import BLOCK, OPERANDS, batch_words
from flambeau.devices.cpu.attention.forward_text import FORWARD_WORDS, forward_kernel
from flambeau.devices.cpu.attention.rows_text import LANES, AttentionClass
from flambeau.devices.cpu.steps import (
    SLACK_BYTES,
    At,
    NativePlan,
    NativeStep,
    aligned,
    row_bytes,
)

Words = dict[str, int | At]

# Rows and vectors of a tile by the width of vectors.
_TILES: Final = {256: (6, 2), 512: (8, 2)}
# Multiply-adds of the smallest unit worth handing out for balance, and of a chunk of units.
_BALANCE_WORK: Final = 1_000_000
_CHUNK_WORK: Final = 2_000_000
# Blocks of queries that share packed keys, at least.
_LEAST_BLOCKS: Final = 4


def _word(value: float, size: int) -> int:
    """Bits of a float32 or float64."""
    if size == 8:
        return int(struct.unpack("=q", struct.pack("=d", value))[0])
    return int(struct.unpack("=i", struct.pack("=f", value))[0])


class _Problem:
    """An attention whose operands are (*batch, rows, columns), columns contiguous."""

    def __init__(self, reads: Sequence[Any], mask: Any, drop: Any, is_causal: bool) -> None:
        query, key, value = reads
        self.operands = {"query": query, "key": key, "value": value, "mask": mask, "drop": drop}
        self.size: int = query.dtype.itemsize
        self.batch = tuple(query.shape[:-2])
        self.n_entries: int = prod(self.batch)
        self.queries: int = query.shape[-2]
        self.depth: int = query.shape[-1]
        self.keys: int = value.shape[-2]
        self.value_depth: int = value.shape[-1]
        self.is_causal = is_causal
        bits = features.vector_bits()
        rows, vectors = _TILES[bits]
        name = "" if mask is None else "bool" if mask.dtype is not query.dtype else "float"
        self.kind = AttentionClass(
            query.dtype, bits, name, drop is not None, len(self.batch), rows, vectors
        )
        self.work = self.queries * self.keys * (self.depth + self.value_depth)
        self.score_row = row_bytes((self.rounded(self.keys) + 2 * LANES) * self.size)
        self.scratch = aligned(rows * self.kind.tile.width * self.size)  # sums of a tile

    def taken(self, n_bytes: int) -> int:
        """Where scratch has room for so many bytes."""
        start = self.scratch
        self.scratch += aligned(n_bytes)
        return start

    def rounded(self, count: int) -> int:
        """Columns of whole tiles."""
        width = self.kind.tile.width
        return -(-count // width) * width

    def column_bytes(self, depth: int) -> int:
        """Bytes of a packed column: whole vectors."""
        lanes = self.kind.element.lanes
        return -(-depth // lanes) * lanes * self.size

    def words(self, scale: float, keep: float, group_rows: int) -> Words:
        """What both directions are told."""
        block_row = row_bytes(self.depth * self.size)
        made_row = row_bytes(self.rounded(max(self.depth, self.value_depth)) * self.size)
        column = self.column_bytes(self.depth)
        return {
            **self._operand_words(), "queries": self.queries, "keys": self.keys,
            "depth": self.depth, "value_depth": self.value_depth,
            "is_causal": int(self.is_causal), "scale": _word(scale, self.size),
            "keep": _word(keep, self.size), "group_rows": group_rows,
            "n_groups": -(-self.queries // group_rows), "block_row": block_row,
            "score_row": self.score_row, "made_row": made_row, "column_bytes": column,
            "packed": self.taken(self.rounded(self.keys) * column),
            "block": self.taken(BLOCK * block_row), "scores": self.taken(BLOCK * self.score_row),
            "made": self.taken(BLOCK * made_row),
        }  # fmt: skip

    def _operand_words(self) -> Words:
        """Where operands lie; `read` numbers go by their order."""
        words: Words = {}
        number = 0
        for name, memory in self.operands.items():
            words[f"{name}_at"] = 0
            strides = [0] * (len(self.batch) + 1)
            if memory is not None:
                words[f"{name}_at"] = At("read", number)
                number += 1
                strides = [each * memory.dtype.itemsize for each in memory.strides[:-1]]
            for d, size in enumerate(self.batch):
                words[f"size.{d}"] = size
                words[f"{name}.{d}"] = strides[d]
            words[f"{name}_row"] = strides[-1]
        return words

    def group_blocks(self) -> int:
        """Blocks of queries of a unit: all, unless the threads would have too few units."""
        n_blocks = -(-self.queries // BLOCK)
        wanted = min(4 * features.n_threads(), self.n_entries * self.work // _BALANCE_WORK)
        groups: int = max(1, min(n_blocks // _LEAST_BLOCKS, -(-wanted // self.n_entries)))
        return -(-n_blocks // groups)

    def plan(
        self, kernel: tuple[str, str], names: tuple[str, ...], words: Words, n_units: int
    ) -> NativePlan:
        """One step."""
        name, text = kernel
        arguments = tuple([words[each] for each in names])
        work = max(1, self.work * self.n_entries // n_units)
        chunk = max(1, min(_CHUNK_WORK // work, -(-n_units // (4 * features.n_threads()))))
        scratch = self.scratch + SLACK_BYTES
        return NativePlan((NativeStep(name, text, n_units, chunk, arguments, scratch),))


def forward(
    reads: Sequence[Any], writes: Sequence[Any], scale: float, keep: float, is_causal: bool,
    has_mask: bool, has_drop: bool,
) -> NativePlan:  # fmt: skip
    """query, key, value [, mask] [, dropout mask] to the result and, of each row, the largest score
    and what its exponentials are multiplied by to be weights; all contiguous."""
    rest = list(reads[3:])
    mask = rest.pop(0) if has_mask else None
    problem = _Problem(reads[:3], mask, rest.pop(0) if has_drop else None, is_causal)
    if not problem.n_entries or not problem.queries:
        return NativePlan(())
    words = problem.words(scale, keep, problem.group_blocks() * BLOCK)
    for number, name in enumerate(("out_at", "largest_at", "share_at")):
        words[name] = At("write", number)
    names = (*FORWARD_WORDS, *batch_words(problem.kind.n_batch, OPERANDS))
    n_units = problem.n_entries * -(-problem.queries // (problem.group_blocks() * BLOCK))
    return problem.plan(forward_kernel(problem.kind), names, words, n_units)


def backward(
    reads: Sequence[Any], writes: Sequence[Any], scale: float, keep: float, is_causal: bool,
    has_mask: bool, has_drop: bool,
) -> NativePlan:  # fmt: skip
    """query, key, value [, mask] [, dropout mask], the result's cotangent, largest, share to the
    cotangents of query and, by parts of the queries, of key and value: (parts, *batch, ...)."""
    *rest, grad, _, _ = reads[3:]
    mask = rest.pop(0) if has_mask else None
    problem = _Problem(reads[:3], mask, rest.pop(0) if has_drop else None, is_causal)
    problem.operands["grad"] = grad
    if not problem.n_entries or not problem.keys:
        return NativePlan(())
    kind, size = problem.kind, problem.size
    parts = writes[1].shape[0]
    n_blocks = max(1, -(-problem.queries // BLOCK))
    group_rows = -(-n_blocks // parts) * BLOCK
    words = problem.words(scale, keep, group_rows)
    tile_bytes = kind.rows * kind.tile.width * size
    panel = -(-problem.keys // kind.rows) * tile_bytes
    columns = problem.rounded(max(problem.depth, problem.value_depth))
    sums_bytes = columns // kind.tile.width * panel
    result_row = row_bytes(problem.value_depth * size)
    value_column = problem.column_bytes(problem.value_depth)
    words |= {
        "largest_at": At("read", len(reads) - 2), "share_at": At("read", len(reads) - 1),
        "into_query_at": At("write", 0), "into_key_at": At("write", 1),
        "into_value_at": At("write", 2), "result_row": result_row, "value_column": value_column,
        "values": problem.taken(problem.rounded(problem.keys) * value_column),
        "results": problem.taken(BLOCK * result_row),
        "slopes": problem.taken(BLOCK * problem.score_row),
        "keys_sum": problem.taken(sums_bytes), "values_sum": problem.taken(sums_bytes),
        "panel_sums": panel, "sums_step": tile_bytes, "sums_bytes": sums_bytes,
        "n_entries": problem.n_entries,
    }  # fmt: skip
    names = (*BACKWARD_WORDS, *batch_words(kind.n_batch, BACKWARD_OPERANDS))
    return problem.plan(backward_kernel(kind), names, words, problem.n_entries * parts)
