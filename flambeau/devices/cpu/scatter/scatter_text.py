"""LLVM text of writing by index: for places in order, target[index] = or += source.

Keeps     an index outside [0, bound) sets the error word and touches nothing else; places are
          visited in row-major order, so the last write wins and sums have one order. A unit owns
          a block of columns of a batch: no two units meet.
Touches   writer, stored.
Not here  which dimensions are which, how many units (plan.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.stored import folded, shaped, stored_type, widen
from flambeau.devices.cpu.writer import Writer, kernel_of

# Words before the dimensions; strides in bytes.
WORDS: Final = (
    "index_at", "source_at", "target_at", "error_at", "bound", "skipped", "n_blocks", "columns",
    "block", "index_column", "source_column", "target_column",
)  # fmt: skip


@dataclass(frozen=True)
class ScatterClass:
    """What a kernel's text depends on.

    fold        what is stored: "put" (the new value), "add", "mul", "max" or "min" of both
    places      dimensions of places: size, index stride, source stride
    targets     dimensions one index runs over, row-major: size, stride
    batch       dimensions of units: size, index stride, source stride, target stride
    columns     "" (none), "shared" (one index for a row of columns), "own" (one for each)
    lanes       elements of a vector where columns are shared and contiguous, else 0
    is_wide     the target is float32 where elements have 16 bits
    """

    element: dtype
    fold: str
    places: int
    targets: int
    batch: int
    columns: str
    lanes: int
    is_wide: bool = False

    @property
    def target_type(self) -> str:
        """LLVM type of the target's elements."""
        return "float" if self.is_wide else stored_type(self.element)


@lru_cache(maxsize=512)
def scatter_kernel(kind: ScatterClass) -> tuple[str, str]:
    """Name and text of a kernel."""
    w = Writer()
    words = w.words(WORDS)
    position = len(WORDS)
    places = _dims(w, position, kind.places, ("size", "index", "source"))
    position += 3 * kind.places
    targets = _dims(w, position, kind.targets, ("size", "target"))
    position += 2 * kind.targets
    batch = _dims(w, position, kind.batch, ("size", "index", "source", "target"))
    with w.loop("%begin", "%end") as unit:
        rest, block = w.divide(unit.index, words["n_blocks"])
        pointers = [words["index_at"], words["source_at"], words["target_at"]]
        for dim in reversed(batch):
            rest, at = w.divide(rest, dim["size"])
            for number, name in enumerate(("index", "source", "target")):
                pointers[number] = w.moved(pointers[number], w.mul(at, dim[name]))
        first = w.mul(block, words["block"])
        words["n"] = w.smaller(w.sub(words["columns"], first), words["block"])
        for number, name in enumerate(("index_column", "source_column", "target_column")):
            pointers[number] = w.moved(pointers[number], w.mul(first, words[name]))
        _walk(w, kind, words, places, targets, pointers)
    w.put("ret void")
    what = "sum" if kind.is_wide else kind.fold
    family = f"scatter_{what}_{kind.element.short_name}"
    return kernel_of(family, w)


def _dims(w: Writer, position: int, count: int, names: tuple[str, ...]) -> list[dict[str, str]]:
    result = []
    for _ in range(count):
        result.append(w.words(names, w.at("i64", "%args", position)))
        position += len(names)
    return result


def _walk(
    w: Writer, kind: ScatterClass, words: dict[str, str], places: list[dict[str, str]],
    targets: list[dict[str, str]], pointers: list[str],
) -> None:  # fmt: skip
    """Loops over the places, outermost first, then over columns."""
    index, source, target = pointers
    if places:
        dim = places[0]
        with w.loop("0", dim["size"], [("ptr", index), ("ptr", source)]) as loop:
            own_index, own_source = loop.carried
            _walk(w, kind, words, places[1:], targets, [own_index, own_source, target])
            loop.next = [w.moved(own_index, dim["index"]), w.moved(own_source, dim["source"])]
    elif kind.columns == "own":
        start = [("ptr", index), ("ptr", source), ("ptr", target)]
        with w.loop("0", words["n"], start) as loop:
            index, source, target = loop.carried
            with w.when(_chosen(w, words, place := w.load("i64", index))):
                _one(w, kind, source, _target(w, targets, target, place))
            loop.next = [
                w.moved(index, words["index_column"]),
                w.moved(source, words["source_column"]),
                w.moved(target, words["target_column"]),
            ]
    else:
        with w.when(_chosen(w, words, place := w.load("i64", index))):
            at = _target(w, targets, target, place)
            if not kind.columns:
                _one(w, kind, source, at)
            elif kind.lanes:
                _row(w, kind, words["n"], source, at)
            else:
                with w.loop("0", words["n"], [("ptr", source), ("ptr", at)]) as loop:
                    _one(w, kind, loop.carried[0], loop.carried[1])
                    loop.next = [
                        w.moved(loop.carried[0], words["source_column"]),
                        w.moved(loop.carried[1], words["target_column"]),
                    ]


def _chosen(w: Writer, words: dict[str, str], place: str) -> str:
    """Whether an index is to be followed; one out of bounds sets the error word."""
    not_skipped = w.compare("ne", place, words["skipped"])
    inside = w.compare("ult", place, words["bound"])
    with w.when(w.let(f"xor i1 {inside}, true")):
        error = w.load("i64", words["error_at"])
        flag = w.let(f"zext i1 {not_skipped} to i64")
        w.store("i64", w.let(f"or i64 {error}, {flag}"), words["error_at"])
    return w.let(f"and i1 {inside}, {not_skipped}")


def _target(w: Writer, targets: list[dict[str, str]], target: str, place: str) -> str:
    """Address of the target's element, or first column, number `place`."""
    for dim in reversed(targets[1:]):
        place, at = w.divide(place, dim["size"])
        target = w.moved(target, w.mul(at, dim["target"]))
    return w.moved(target, w.mul(place, targets[0]["target"]))


def _one(w: Writer, kind: ScatterClass, source: str, target: str, lanes: int = 0) -> None:
    stored = shaped(stored_type(kind.element), lanes)
    align = kind.element.itemsize
    value = w.load(stored, source, align)
    if kind.is_wide:
        vector = shaped("float", lanes)
        total = w.let(
            f"fadd {vector} {w.load(vector, target, 4)}, {widen(w, kind.element, value, lanes)}"
        )
        w.store(vector, total, target, 4)
        return
    if kind.fold != "put":
        own = w.load(stored, target, align)
        value = folded(w, kind.element, kind.fold, own, value, lanes)
    w.store(stored, value, target, align)


def _row(w: Writer, kind: ScatterClass, n: str, source: str, target: str) -> None:
    """Contiguous columns: whole vectors, then single elements."""

    def one(index: str, lanes: int) -> None:
        from_at = w.at(stored_type(kind.element), source, index)
        _one(w, kind, from_at, w.at(kind.target_type, target, index), lanes)

    whole = w.let(f"and i64 {n}, {-kind.lanes}")
    with w.loop("0", whole, step=kind.lanes) as loop:
        one(loop.index, kind.lanes)
    with w.loop(whole, n) as loop:
        one(loop.index, 0)
