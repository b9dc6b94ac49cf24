"""Attention as LLVM text: a block of queries against all its keys, then their values.

Keeps     a query's result does not depend on the block it is in, nor on other queries. Products
          keep the contract of gemm.tile_text.
Touches   blocks_text, gemm.pack_text, writer.
Not here  sizes of blocks and units (plan.py), the gradient (backward_text.py).

A unit is a batch entry and a group of blocks of its queries. It packs the entry's keys once; then
for each block of queries the scores lie in scratch, become weights in place, and multiply the
values. The weights are exponentials as they are; the result is divided by their sum."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from flambeau.devices.cpu.attention.blocks_text import BLOCK, OPERANDS, WORDS, BlocksText
from flambeau.devices.cpu.attention.rows_text import AttentionClass
from flambeau.devices.cpu.writer import Writer

GROUP: Final = 4  # rows whose chains of sums and exponentials run at the same time
FORWARD_WORDS: Final = (*WORDS, "out_at")


@lru_cache(maxsize=256)
def forward_kernel(kind: AttentionClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    return ForwardText(Writer(), kind, FORWARD_WORDS, OPERANDS).kernel("attention")


class ForwardText(BlocksText):
    """Writes the work of a unit."""

    def unit(self, index: str) -> None:
        """A group of blocks of one entry."""
        w, words = self.w, self.words
        entry, group = w.divide(index, words["n_groups"])
        at = self.entry(entry)
        first = w.mul(group, words["group_rows"])
        end = w.smaller(words["queries"], w.add(first, words["group_rows"]))
        self.pack(
            at["key"], self.place("packed"), words["depth"], self.reach(end), words["key_row"],
            words["column_bytes"],
        )  # fmt: skip
        start = w.mul(entry, words["queries"])
        with w.loop(first, end, step=BLOCK) as block:
            rows = w.smaller(w.sub(end, block.index), BLOCK)
            self.block(at, w.add(start, block.index), block.index, rows)

    def block(self, at: dict[str, str], result: str, first: str, n_rows: str) -> None:
        """Queries [first, first + n_rows), the first of which has row `result` of the result."""
        w, words = self.w, self.words
        m = self.rounded(n_rows, self.kind.rows)
        n = self.reach(w.add(first, n_rows))
        self.scores(self.row_of(at["query"], first, "query_row"), n_rows, m, n)
        whole = w.let(f"and i64 {n_rows}, {-GROUP}")
        for start, end, count in (("0", whole, GROUP), (whole, n_rows, 1)):
            with w.loop(start, end, step=count) as row:
                place, query = (w.add(each, row.index) for each in (result, first))
                self.weights(at, place, query, row.index, n, count)
        made, columns = self.place("made"), words["value_depth"]
        self.times_rows(self.place("scores"), at["value"], "value_row", columns, made, m, n)
        scalar = self.rows.scalar
        with w.loop("0", n_rows) as row:
            place = w.add(result, row.index)
            factor = w.load(scalar, w.at(scalar, words["share_at"], place))
            if self.kind.has_drop:
                factor = w.let(f"fdiv {scalar} {factor}, {self.keep}")
            target = w.at(scalar, words["out_at"], w.mul(place, columns))
            self.rows.scaled_row(self.row_of(made, row.index, "made_row"), target, factor, columns)

    def weights(
        self, at: dict[str, str], place: str, query: str, row: str, n: str, count: int
    ) -> None:
        """`count` rows of scores to weights, of which the first n matter."""
        w, words, rows = self.w, self.words, self.rows
        queries = [w.add(query, i) for i in range(count)]
        found = [self.masked_row(at, each, w.add(row, i), count) for i, each in enumerate(queries)]
        scores, length = [each[0] for each in found], found[-1][1]
        largest = rows.largest(scores, length)
        drops = (
            [self.row_of(at["drop"], each, "drop_row") for each in queries]
            if self.kind.has_drop
            else []
        )
        totals = rows.exponentials(scores, length, largest, drops)
        for i, total in enumerate(totals):
            rows.zeros(scores[i], length, n)
            share = rows.formula(
                lambda k, s: k.div(1.0, k.select(k.eq(s, 0.0), 1.0, s)), total, lanes=1
            )
            for name, value in (("largest_at", largest[i]), ("share_at", share)):
                w.store(rows.scalar, value, w.at(rows.scalar, words[name], w.add(place, i)))
