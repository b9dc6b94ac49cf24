"""The gradient of attention as LLVM text: weights again, block by block, and what flows through.

Keeps     cotangents of keys and values are sums over blocks of queries in order, by the contract of
          gemm.tile_text for the rows of a block; a part's blocks follow from sizes alone.
Touches   blocks_text, gemm.pack_text, writer.
Not here  sizes of parts (ops/rows/attention.py), adding parts up, the cotangent of a mask.

A unit is a batch entry and a part of its queries. For each block: the weights P from what the
forward pass kept, the cotangent of the weights (that of the result times the values), that of the
scores dS = P (dP - sum(P dP)); then dS times the keys is done with, and P^T, dS^T times rows of the
block are added to sums that wait in scratch."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.attention.blocks_text import BLOCK, OPERANDS, WORDS, BlocksText
from flambeau.devices.cpu.attention.rows_text import ZERO, AttentionClass
from flambeau.devices.cpu.tiles import set_context, tiles
from flambeau.devices.cpu.writer import Writer

# In scratch: packed values, a block of the cotangent, cotangents of a block's scores, sums of the
# cotangents of keys and of values, from panel to panel and from tile to tile so many bytes.
BACKWARD_WORDS: Final = (
    *WORDS, "grad_at", "into_query_at", "into_key_at", "into_value_at", "grad_row", "result_row",
    "value_column", "values", "results", "slopes", "keys_sum", "values_sum", "panel_sums",
    "sums_step", "sums_bytes", "n_entries",
)  # fmt: skip
BACKWARD_OPERANDS: Final = (*OPERANDS, "grad")


@lru_cache(maxsize=256)
def backward_kernel(kind: AttentionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    text = BackwardText(Writer(), kind, BACKWARD_WORDS, BACKWARD_OPERANDS)
    return text.kernel("attention_backward")


class BackwardText(BlocksText):
    """Writes the work of a unit."""

    def unit(self, index: str) -> None:
        """A part of the queries of one entry; results of parts lie one behind the other."""
        w, words = self.w, self.words
        part, entry = w.divide(index, words["n_entries"])
        at = self.entry(entry)
        first = w.mul(part, words["group_rows"])
        end = w.smaller(words["queries"], w.add(first, words["group_rows"]))
        reach = self.reach(end)
        for name, depth, target, step in (
            ("key", "depth", "packed", "column_bytes"),
            ("value", "value_depth", "values", "value_column"),
        ):
            row = words[f"{name}_row"]
            self.pack(at[name], self.place(target), words[depth], reach, row, words[step])
        self._clear()
        start = w.mul(entry, words["queries"])
        with w.loop(first, end, step=BLOCK) as block:
            rows = w.smaller(w.sub(end, block.index), BLOCK)
            self._block(at, w.add(start, block.index), block.index, rows)
        for name, depth in (("key", "depth"), ("value", "value_depth")):
            out = w.mul(w.mul(index, words["keys"]), words[depth])
            target = w.at(self.rows.scalar, words[f"into_{name}_at"], out)
            self._finished(self.place(f"{name}s_sum"), words[depth], target)

    def _clear(self) -> None:
        """Sums of nothing."""
        w, element = self.w, self.kind.element
        for name in ("keys_sum", "values_sum"):
            start = self.place(name)
            with w.loop("0", self.words["sums_bytes"], step=element.lanes * self.size) as loop:
                to = w.moved(start, loop.index)
                w.store(element.vector, "zeroinitializer", to, self.size)

    def _block(self, at: dict[str, str], result: str, first: str, n_rows: str) -> None:
        """Queries [first, first + n_rows), the first of which has row `result` of the result."""
        w, words = self.w, self.words
        m = self.rounded(n_rows, self.kind.rows)
        n = self.reach(w.add(first, n_rows))
        self.scores(self.row_of(at["query"], first, "query_row"), n_rows, m, n)
        results, slopes, scores = (self.place(each) for each in ("results", "slopes", "scores"))
        one = self.rows.constant_scalar(1.0)
        grad = self.row_of(at["grad"], first, "grad_row")
        depth = words["value_depth"]
        self.copy_scaled((grad, "grad_row"), (results, "result_row"), n_rows, one, depth)
        packed = (self.place("values"), "value_column")
        self.times_packed((results, "result_row"), depth, packed, slopes, m, n)
        # To the end of a block, whatever a tile's rows: hidden keys get 0 times what may be NaN.
        all_keys = self.rounded(words["keys"], self.kind.rows)
        n_sums = w.smaller(self.rounded(n, BLOCK), all_keys)
        with w.loop("0", n_rows) as row:
            query = w.add(first, row.index)
            self._row(at, w.add(result, row.index), query, row.index, n_sums)
        made, columns = self.place("made"), words["depth"]
        self.times_rows(slopes, at["key"], "key_row", columns, made, m, n)
        with w.loop("0", n_rows) as row:
            place = w.mul(w.add(result, row.index), columns)
            target = w.at(self.rows.scalar, words["into_query_at"], place)
            source = self.row_of(made, row.index, "made_row")
            self.rows.scaled_row(source, target, self.scale, columns)
        self._add(scores, (results, "result_row"), depth, self.place("values_sum"), n_rows, n_sums)
        block = (self.place("block"), "block_row")
        self._add(slopes, block, words["depth"], self.place("keys_sum"), n_rows, n_sums)

    def _row(self, at: dict[str, str], place: str, query: str, row: str, n: str) -> None:
        """A row of scores to weights, one of slopes to cotangents of scores; 0 from their end to
        n."""
        w, words, rows = self.w, self.words, self.rows
        scores, length = self.masked_row(at, query, row)
        slopes = self.row_of(self.place("slopes"), row, "score_row")
        largest, share = (
            w.load(rows.scalar, w.at(rows.scalar, words[each], place))
            for each in ("largest_at", "share_at")
        )
        rows.weights_again(scores, length, largest, share)
        rows.ended(slopes, length, ZERO)
        drop = self.row_of(at["drop"], query, "drop_row") if self.kind.has_drop else ""
        if drop:
            rows.dropped(slopes, length, drop, self.keep)
        rows.softmax_gradient(scores, slopes, length)
        if drop:
            rows.dropped(scores, length, drop, self.keep)
        for each in (scores, slopes):
            rows.zeros(each, length, n)

    def _add(
        self, left: str, right: tuple[str, str], columns: str, sums: str, n_rows: str, m: str
    ) -> None:
        """Adds the first m columns of `left` (as rows), times rows of a block, to the sums."""
        w, words, tile = self.w, self.words, self.kind.tile
        set_context(
            w, self.context, a_row=self.size, a_column=words["score_row"], b_row=words[right[1]],
            c_row=words["made_row"], k_length=n_rows, is_first=0, is_last=0,
        )  # fmt: skip
        tiles(
            w, tile, self.context, left, right[0], self.place("made"), m,
            self.rounded(columns, tile.width), self.size, words["made_row"], sums,
            words["sums_step"], panel_sums=words["panel_sums"],
        )  # fmt: skip
        set_context(w, self.context, is_last=1)

    def _finished(self, sums: str, columns: str, target: str) -> None:
        """Sums of all keys to the result, tile by tile."""
        w, words, tile = self.w, self.words, self.kind.tile
        made, row_bytes = self.place("made"), words["made_row"]
        set_context(w, self.context, k_length=0, is_first=0, c_row=row_bytes)
        one = self.rows.constant_scalar(1.0)
        with w.loop("0", words["keys"], [("ptr", sums)], step=tile.rows) as loop:
            tiles(
                w, tile, self.context, made, made, made, str(tile.rows),
                self.rounded(columns, tile.width), 0, row_bytes, loop.carried[0],
                words["sums_step"], panel_sums=words["panel_sums"],
            )  # fmt: skip
            rows = w.smaller(w.sub(words["keys"], loop.index), tile.rows)
            with w.loop("0", rows) as row:
                place = w.mul(w.add(loop.index, row.index), columns)
                to = w.at(self.rows.scalar, target, place)
                source = self.row_of(made, row.index, "made_row")
                self.rows.scaled_row(source, to, one, columns)
            loop.next = [w.moved(loop.carried[0], words["sums_step"])]
