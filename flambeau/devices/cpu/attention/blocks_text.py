"""What the attention kernels share: words, entries, and the scores of a block of queries.

Keeps     keys that a block's causal mask hides altogether are not looked at.
Touches   rows_text, tiles, gemm.pack_text, writer.
Not here  what is done with the scores (forward_text.py, backward_text.py)."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.attention.rows_text import AttentionClass, RowsText
from flambeau.devices.cpu.gemm.pack_text import pack_b_function
from flambeau.devices.cpu.tiles import context_of, set_context, tile_functions, tiles
from flambeau.devices.cpu.writer import Writer, kernel_of

BLOCK: Final = 48  # queries of a block: a multiple of every tile's rows

# Strides in bytes. column_bytes: from a column of packed keys to the next; packed, block, scores:
# where scratch holds the keys, a block of scaled queries and its scores.
WORDS: Final = (
    "query_at", "key_at", "value_at", "mask_at", "drop_at", "largest_at", "share_at", "queries",
    "keys", "depth", "value_depth", "scale", "keep", "is_causal", "n_groups", "group_rows",
    "query_row", "key_row", "value_row", "mask_row", "drop_row", "block_row", "score_row",
    "made_row", "column_bytes", "packed", "block", "scores", "made",
)  # fmt: skip
OPERANDS: Final = ("query", "key", "value", "mask", "drop")


def batch_words(n_batch: int, operands: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the words of batch dimensions: of each its size and its strides."""
    return tuple(f"{each}.{d}" for d in range(n_batch) for each in ("size", *operands))


class BlocksText:
    """Writes what both directions do with a block of queries."""

    def __init__(
        self, w: Writer, kind: AttentionClass, names: tuple[str, ...], operands: tuple[str, ...]
    ) -> None:
        self.w = w
        self.kind = kind
        self.operands = operands
        self.rows = RowsText(w, kind)
        self.words = w.words((*names, *batch_words(kind.n_batch, operands)))
        self.size = kind.element.n_bytes
        self.context = context_of(w, c_column=self.size, is_last=1)
        self.is_causal = w.compare("ne", self.words["is_causal"], 0)
        self.scale, self.keep = (self.number(self.words[each]) for each in ("scale", "keep"))

    def unit(self, index: str) -> None:
        """Write the work of a unit."""
        raise NotImplementedError

    def kernel(self, name: str) -> tuple[str, str]:
        """Name and text of the kernel that does a range of units."""
        w, kind = self.w, self.kind
        with w.loop("%begin", "%end") as unit:
            self.unit(unit.index)
        w.put("ret void")
        functions = tile_functions([kind.tile])
        functions += pack_b_function(kind.element, "columns", kind.vectors)
        return kernel_of(f"{name}_{kind.dtype.short_name}", w, functions)

    def place(self, name: str) -> str:
        """Where scratch holds something."""
        return self.w.moved("%scratch", self.words[name])

    def number(self, word: str) -> str:
        """A number of the class's dtype, whose bits are the low ones of a word."""
        w = self.w
        if self.size == 8:
            return w.let(f"bitcast i64 {word} to double")
        return w.let(f"bitcast i32 {w.let(f'trunc i64 {word} to i32')} to float")

    def entry(self, entry: str) -> dict[str, str]:
        """Where the operands of a batch entry begin."""
        w, words = self.w, self.words
        at = {name: words[f"{name}_at"] for name in self.operands}
        for d in reversed(range(self.kind.n_batch)):
            entry, index = w.divide(entry, words[f"size.{d}"])
            for name in self.operands:
                at[name] = w.moved(at[name], w.mul(index, words[f"{name}.{d}"]))
        return at

    def pack(self, source: str, target: str, depth: str, count: str, row: str, step: str) -> None:
        """Rows of a matrix as columns of panels `step` bytes a column."""
        w = self.w
        panel = w.mul(step, self.kind.tile.width)
        w.put(
            f"call fastcc void @pack_b(ptr {source}, ptr {target}, i64 {depth}, i64 {count}, "
            f"i64 {self.size}, i64 {row}, i64 {panel})"
        )

    def reach(self, end: str) -> str:
        """Keys that queries before `end` look at."""
        w, keys = self.w, self.words["keys"]
        return w.let(f"select i1 {self.is_causal}, i64 {w.smaller(keys, end)}, i64 {keys}")

    def rounded(self, count: str, unit: int) -> str:
        """Least multiple of `unit` that is not below `count`."""
        w = self.w
        return w.mul(w.let(f"udiv i64 {w.add(count, unit - 1)}, {unit}"), unit)

    def row_of(self, source: str, row: str, stride: str) -> str:
        """Row number `row` of a matrix."""
        return self.w.moved(source, self.w.mul(row, self.words[stride]))

    def copy_scaled(
        self, source: tuple[str, str], target: tuple[str, str], n_rows: str, factor: str, n: str
    ) -> None:
        """n_rows rows of n elements times `factor`; matrices as (pointer, name of the stride)."""
        with self.w.loop("0", n_rows) as row:
            start, to = (self.row_of(each[0], row.index, each[1]) for each in (source, target))
            self.rows.scaled_row(start, to, factor, n)

    def times_packed(self, block: tuple[str, str], depth: str, packed: tuple[str, str], out: str,
                     m: str, n: str) -> None:  # fmt: skip
        """A block's m rows (pointer, stride's name) times packed columns to rows of scores."""
        w, words, tile = self.w, self.words, self.kind.tile
        a_row, c_row = words[block[1]], words["score_row"]
        set_context(
            w, self.context, a_row=a_row, a_column=self.size, b_row=tile.width * self.size,
            c_row=c_row, k_length=depth, is_first=1,
        )  # fmt: skip
        tiles(
            w, tile, self.context, block[0], packed[0], out, m, self.rounded(n, tile.width), a_row,
            c_row, "%scratch", 0, words[packed[1]],
        )  # fmt: skip

    def times_rows(
        self, left: str, right: str, right_row: str, columns: str, made: str, m: str, n: str
    ) -> None:
        """m rows of n scores times n rows of an operand, to rows of `made`."""
        w, words, tile = self.w, self.words, self.kind.tile
        a_row, c_row = words["score_row"], words["made_row"]
        set_context(
            w, self.context, a_row=a_row, a_column=self.size, b_row=words[right_row], c_row=c_row,
            k_length=n, is_first=1,
        )  # fmt: skip
        tiles(
            w, tile, self.context, left, right, made, m, self.rounded(columns, tile.width), a_row,
            c_row, "%scratch", 0,
        )  # fmt: skip

    def scores(self, query: str, n_rows: str, m: str, n: str) -> None:
        """Scores of a block: the scaled queries times the packed keys."""
        block, depth = self.place("block"), self.words["depth"]
        self.copy_scaled((query, "query_row"), (block, "block_row"), n_rows, self.scale, depth)
        packed = (self.place("packed"), "column_bytes")
        self.times_packed((block, "block_row"), depth, packed, self.place("scores"), m, n)

    def masked_row(
        self, at: dict[str, str], query: str, row: str, count: int = 1
    ) -> tuple[str, str]:
        """(a row of scores with its mask on, how many keys it looks at); it also has its end where
        it goes on with the longest of `count` rows from it on."""
        scores = self.row_of(self.place("scores"), row, "score_row")
        length = self.reach(self.w.add(query, 1))
        if self.kind.mask:
            self.rows.masked(scores, length, self.row_of(at["mask"], query, "mask_row"))
        self.rows.ended(scores, length)
        if count > 1:
            self.rows.ended(scores, self.w.add(length, count))
        return scores, length
