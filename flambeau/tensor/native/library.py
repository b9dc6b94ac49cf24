"""The native recorder of this process: its code, its tables, the type of its callables.

Keeps     what native code points at is held here for good; without it (another Python, no native
          code, FLAMBEAU_NATIVE_RECORDER=0) closures.py does the same work.
Touches   engine, gradients, devices.cpu.jit, ctypes.
Not here  the text (text/), which operators get callables (closures.py)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sized
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from flambeau.base.dtypes import dtype
from flambeau.engine import callsite, external, run, stream
from flambeau.engine.segment import Segment
from flambeau.engine.storage import Storage
from flambeau.engine.stream import LOCAL
from flambeau.engine.view import UNPLACED, Place
from flambeau.gradients import autocast, graph
from flambeau.gradients.graph import OperatorNode
from flambeau.gradients.recording.inplace import NO_GRAD
from flambeau.gradients.recording.plan import (
    ATTRIBUTE,
    GRAD,
    LAYOUT,
    NEEDS,
    SAVED,
    Plan,
)
from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import OWN, SPECIAL
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.native import tables, types
from flambeau.tensor.native.flush import known
from flambeau.tensor.native.tables import (
    CACHE_BITS,
    CALLABLE,
    CODE_BITS,
    ENTRY,
    ENTRY_BYTES,
    GOLDEN,
    NO_VALUE,
    PROBES,
    PROGRAM,
    SITE_BITS,
    TABLE,
    VALUE_MASK,
)
from flambeau.tensor.number_rules import is_special
from flambeau.tensor.tensor import Tensor

if TYPE_CHECKING:
    from flambeau.devices.cpu import jit
    from flambeau.devices.cpu.jit.ahead import Ahead

SWITCH: Final = "FLAMBEAU_NATIVE_RECORDER"
_LATE: Final = "recorded while another thread flushed"
_WORD: Final = (1 << 64) - 1
# Folders that decide what the texts are: a flush fills the state of a run.
_FOLDERS: Final = ("tensor/native", "devices/cpu/runner", "devices/cpu/team")
_KINDS: Final = (
    "unary",
    "binary",
    "general",
    "view",
    "getitem",
    "inplace_unary",
    "inplace_binary",
    "walk",
    "discover",
    "bind",
    "flush",
    "quick",
    "item",
    "numpy",
    "slots",
    "bumps",
    "free_block",
    "guard",
)
COMPILE_AFTER: Final = 1000  # records
_FAILURES: Final = (
    types.UnknownLayoutError, OSError, RuntimeError, ImportError, AttributeError, KeyError,
)  # fmt: skip
_FOUND: Final[list[Library | None]] = []  # what there is, once that was looked for
_RENEWALS: Final[list[Callable[[], None]]] = []
_recorded: Final = [0]  # operators since the native recorder is awaited
_AHEAD: Final[list[Ahead]] = []  # what compiles it meanwhile


class Library:
    """Native functions and the words they share; `library()` gives the one there is."""

    def __init__(self) -> None:
        from flambeau.devices.cpu import jit
        from flambeau.tensor.native import layout

        texts = _texts(layout.slots())
        compiled = jit.compile_functions(dict(texts.values()))
        addresses = {kind: compiled[name] for kind, (name, _) in texts.items()}
        self._kept: list[Any] = []
        self._codes: list[Any] = [None] * (1 << CODE_BITS)
        self._code_words = self._words(2 << CODE_BITS)
        self._site_words = self._words(3 << SITE_BITS)
        self.table = self._words(len(TABLE))
        self._fill_table()
        self.unary = addresses["unary"]
        self.binary = addresses["binary"]
        self.general = addresses["general"]
        self.view = addresses["view"]
        self.getitem = addresses["getitem"]
        self.inplace_unary = addresses["inplace_unary"]
        self.inplace_binary = addresses["inplace_binary"]
        self.item, self.numpy = addresses["item"], addresses["numpy"]
        self.guard = addresses["guard"]
        self.kind = self._callable_type(addresses["bind"])
        self.walk = self.plain_callable(addresses["walk"])
        self.discover = self.plain_callable(addresses["discover"])
        self.bumps = self.plain_callable(addresses["bumps"])
        run.QUICK.slots = self.plain_callable(addresses["slots"])
        known.install(self, addresses)

    def _words(self, count: int) -> Any:
        made = (ctypes.c_uint64 * count)()
        self._kept.append(made)
        return made

    def keep(self, value: Any) -> int:
        """The address of an object that lives as long as the process."""
        self._kept.append(value)
        return id(value)

    def _fill_table(self) -> None:
        sequence: Any = graph.next_sequence  # a method of the counter native code advances
        values: dict[str, Any] = {
            "tensor": Tensor, "storage": Storage, "place": Place, "node": OperatorNode,
            "local": LOCAL, "zero": 0, "empty": (), "stream": "stream", "touch": "touch",
            "versions": "_versions", "rebased": "_rebased", "version": "version",
            "learn": self._learn,
            "late": _run_late, "special": SPECIAL, "sequence": sequence.__self__,
            "dtype": dtype, "creation": "_creation", "dim": "dim", "index": "index",
             "nothing": graph.NOTHING, "own": OWN, "unplaced": UNPLACED,
            "conformed": graph.conformed, "output": graph.Output, "leaf": graph.AccumulateGrad,
            "as_edges": "as_edges", "one": 1, "no_grad": NO_GRAD,
            "external": external.External, "three": 3,
            "taker": "__torch_function__", "disabled": taken_over.disabled,
        }  # fmt: skip
        for name, value in values.items():
            self.table[TABLE[name] // 8] = self.keep(value)
        self._see_modes()
        taken_over.OBSERVERS.append(self._see_modes)
        self.table[TABLE["codes"] // 8] = ctypes.addressof(self._code_words)
        self.table[TABLE["sites"] // 8] = ctypes.addressof(self._site_words)
        self.table[TABLE["thread"] // 8] = _WORD  # no thread has this number

    def _see_modes(self) -> None:
        """The classes whose tensors native code takes at sight: none while a mode is entered."""
        parameter = taken_over.PARAMETER
        self.table[TABLE["plain"] // 8] = 0 if taken_over.MODES else id(Tensor)
        is_seen = parameter and not taken_over.MODES
        self.table[TABLE["parameter"] // 8] = id(parameter[0]) if is_seen else 0

    def _learn(self, code: CodeType) -> bool:
        """Whether a code object is flambeau's own; native code knows it from now on."""
        internal = callsite.is_internal(code)
        place = (id(code) * GOLDEN & _WORD) >> (64 - CODE_BITS)
        start, end, words = 2 * place, 2 * place + 2, [id(code), internal]
        # No call, so no signal handler and no thread, comes between these lines.
        self._code_words[start] = 0
        self._codes[place] = code
        self._code_words[start:end] = words
        return internal

    def plain_callable(self, function: int) -> Any:
        """A callable that needs nothing but the table."""
        made = self.kind()
        self._kept.append(made)
        for name, word in (("vectorcall", function), ("table", ctypes.addressof(self.table))):
            ctypes.c_uint64.from_address(id(made) + CALLABLE[name]).value = word
        return made

    def program(self, plan: Plan) -> int:
        """Address of what the native walk wants to know of a plan; 0: Python runs such nodes."""
        if plan.multiple or not plan.has_vjp or plan.zero_target:
            return 0
        if plan.has_sequences and not plan.joins:
            return 0
        kinds = {GRAD: tables.GRAD, SAVED: tables.SAVED, ATTRIBUTE: tables.ATTRIBUTE,
                 LAYOUT: tables.LAYOUT, NEEDS: tables.NEEDS}  # fmt: skip
        if plan.joins:
            kinds |= {LAYOUT: tables.LAYOUTS, NEEDS: tables.SEQUENCE_NEEDS}
        pairs: list[int] = []
        for kind, key in plan.fetch:
            if kind not in kinds or (kind == LAYOUT and key not in plan.positions):
                return 0
            if kind == ATTRIBUTE:
                key = self.keep(key)
            elif kind == LAYOUT:
                key = plan.positions.index(key)
            pairs += [kinds[kind], key]
        if len(plan.fetch) >= tables.MAXIMUM_ARGUMENTS:
            return 0
        program = self._words(len(PROGRAM) + len(pairs))
        values = {
            "count": len(plan.fetch), "positions": 0 if plan.joins else len(plan.positions),
            "vjp": self.keep(plan.vjp), "functions": self.keep(RUNTIME.functions),
        }  # fmt: skip
        for name, value in values.items():
            program[PROGRAM[name] // 8] = value
        program[PROGRAM["pairs"] // 8 : PROGRAM["pairs"] // 8 + len(pairs)] = pairs
        return ctypes.addressof(program)

    def _callable_type(self, bind: int) -> type:
        """The type of native callables: functions that bind as methods without an object."""
        members = {
            b"__vectorcalloffset__": CALLABLE["vectorcall"], b"__dictoffset__": CALLABLE["dict"],
            b"__weaklistoffset__": CALLABLE["weak"],
        }  # fmt: skip
        call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
        slots = {types.CALL: call, types.BIND: bind}
        n_bytes = 16 + 8 * len(CALLABLE)
        kind: Any = types.new_type(
            b"flambeau.builtin_function", n_bytes, types.CALLED, slots, members
        )
        kind.__repr__ = lambda self: f"<function {self.__qualname__}>"
        kind.__reduce__ = lambda self: self.__qualname__  # pickled, as functions are, by name
        kind.__eq__, kind.__hash__ = types.is_same, types.hash_of
        return kind


def _is_complex(signature: Any) -> bool:
    return any(each.dtype.is_complex for each in signature.all_layouts)


class Ways:
    """A native callable's cache: operands' layouts to signatures."""

    def __init__(self, library: Library) -> None:
        count = (1 << CACHE_BITS) + PROBES - 1
        self.words: Any = library._words(count * ENTRY_BYTES // 8)
        self._held: list[Any] = [None] * count
        self._known: dict[tuple[Any, Any, int], int] = {}
        self._turn = 0

    def knows(self, left: Any, right: Any, value: int) -> bool:
        """Whether native code takes such calls already."""
        return (left, right, value) in self._known

    def remember(
        self, left: Any, right: Any, value: int, signature: Any, layouts: Any, flags: int
    ) -> None:
        """Let native code take calls of this kind: layout, layout or type of number (None: no
        second operand), value of a number that the signature names. Calls with complex numbers
        are left to Python, which knows the gradients of those."""
        if signature.operator.holomorphic and _is_complex(signature):
            return
        key = (id(left) + (0 if right is None else id(right)) * 31 + value) & _WORD
        first = (key * GOLDEN & _WORD) >> (64 - CACHE_BITS)
        places = range(first, first + PROBES)
        place = next((p for p in places if self._held[p] is None), None)
        if place is None:
            place = first + self._turn % PROBES
            self._turn += 1
        start = place * ENTRY_BYTES // 8
        end = start + ENTRY_BYTES // 8
        entry = {
            "left": id(left), "right": 0 if right is None else id(right), "value": value,
            "signature": id(signature), "layout": id(signature.out_layout),
            "attributes": id(signature.attributes), "layouts": id(layouts), "flags": flags,
        }  # fmt: skip
        filled = [0] * (ENTRY_BYTES // 8)
        for name, word in entry.items():
            filled[ENTRY[name] // 8] = word
        made = (left, right, value, signature, layouts)
        words, held = self.words, self._held
        # No call, so no signal handler and no thread, comes between these four lines; what they
        # replace lives on until the end.
        words[start] = 0
        before = held[place]
        held[place] = made
        words[start:end] = filled
        if before is not None:
            self._known.pop(before[:3], None)
        self._known[left, right, value] = place


def special_value(specials: tuple[float, ...], number: float) -> int:
    """What tells a number that signatures name from all others, as @special says it."""
    for each in specials:
        if is_special(number, (each,)):
            bits: int = struct.unpack("q", struct.pack("d", each))[0]
            return (bits ^ VALUE_MASK) & _WORD
    return NO_VALUE


def specials_address(library: Library, specials: tuple[float, ...]) -> int:
    """Address of a count and these numbers as doubles; 0 where there are none."""
    if not specials:
        return 0
    numbers = (ctypes.c_double * (len(specials) + 1))(0.0, *specials)
    ctypes.c_int64.from_address(ctypes.addressof(numbers)).value = len(specials)
    library.keep(numbers)
    return ctypes.addressof(numbers)


def set_word(made: Any, name: str, word: int) -> None:
    """Set a word of a native callable."""
    ctypes.c_uint64.from_address(id(made) + CALLABLE[name]).value = word


def make_callable(
    library: Library,
    function: int,
    python: Callable[..., Any],
    ways: Any,
    *,
    specials: tuple[float, ...] = (),
    extra: tuple[Any, ...] = (),
    shape: int = 0,
    attach: Callable[..., Any] | None = None,
    mark: Callable[..., Any] | None = None,
    rest: Callable[..., Any] | None = None,
    pausable: bool = False,
) -> Any:
    """A native callable that hands to `python` what it does not do itself.

    ways    what it knows: Ways, or ways.GeneralWays with the parameters' `shape`
    rest    what takes calls with other arguments than the callable is made for
    pausable   hands everything to `python` while a thread is in an autocast region
    """
    made = library.kind()
    is_general = shape != 0
    words = {
        "vectorcall": function, "table": ctypes.addressof(library.table),
        "cache": library.keep(ways.found) if is_general else ctypes.addressof(ways.words),
        "python": library.keep(python), "specials": specials_address(library, specials),
        "extra": shape if is_general else library.keep(extra),
        "attach": library.keep(attach), "mark": library.keep(mark),
        "rest": library.keep(python if rest is None else rest),
    }  # fmt: skip
    library.keep(ways)
    library.keep(made)
    for name, word in words.items():
        set_word(made, name, word)
    made.__wrapped__ = python
    if pausable:
        nothing: Any = {} if is_general else Ways(library)
        empty = library.keep(nothing)
        if not is_general:
            empty = ctypes.addressof(nothing.words)
        _PAUSABLE.append((made, words["cache"], empty))
        _pause_one(_PAUSABLE[-1], autocast.is_anywhere())
    return made


# Callables, what they know, and what knows nothing.
_PAUSABLE: Final[list[tuple[Any, int, int]]] = []


def _pause_one(each: tuple[Any, int, int], pauses: bool) -> None:
    made, known, empty = each
    set_word(made, "cache", empty if pauses else known)


def _pause(pauses: bool) -> None:
    """Let Python decide about calls that autocast may change, or no longer."""
    for each in _PAUSABLE:
        _pause_one(each, pauses)


autocast.OBSERVERS.append(_pause)


def library() -> Library | None:
    """The native recorder, compiled now if it has to be, or None where there is none."""
    if not _FOUND:
        _FOUND.append(_made() if os.environ.get(SWITCH, "1") != "0" else None)
        if _count in run.OBSERVERS:
            run.OBSERVERS.remove(_count)
            for renew in _RENEWALS:
                renew()
    return _FOUND[0]


def ready() -> Library | None:
    """The native recorder where having it costs next to nothing.

    Where nothing of it is on disk yet, compiling it takes longer than a short program runs: that
    begins, beside the program, once it has recorded COMPILE_AFTER operators. Until it is over there
    is none, and those who were told so are told of it by `when_made`."""
    if _FOUND:
        return _FOUND[0]
    if _count not in run.OBSERVERS:
        if SWITCH in os.environ or _is_kept():
            return library()
        run.OBSERVERS.append(_count)
    return None


def is_awaited() -> bool:
    """Whether the native recorder may still come."""
    return not _FOUND


def when_made(renew: Callable[[], None]) -> None:
    """Have `renew` called when the native recorder comes after somebody went on without."""
    _RENEWALS.append(renew)


def _count(reason: str, plan: Any, records: Sized, seconds: Any) -> None:
    _recorded[0] += len(records)
    if _recorded[0] < COMPILE_AFTER:
        return
    if not _AHEAD:
        _AHEAD.append(_begun())
    if _AHEAD[0].is_over():
        library()


def _begun() -> Ahead:
    from flambeau.devices.cpu.jit.ahead import Ahead
    from flambeau.tensor.native import layout

    try:
        texts = _texts(layout.slots())
    except _FAILURES:
        return Ahead({})
    return Ahead(dict(texts.values()))


def _made() -> Library | None:
    try:
        return Library()
    except _FAILURES:
        return None


def _is_kept() -> bool:
    from flambeau.devices.cpu import jit
    from flambeau.tensor.native import layout

    try:
        return jit.load_functions(dict(_texts(layout.slots()).values())) is not None
    except _FAILURES:
        return False


def _run_late(segment: Segment) -> None:
    run.flush(segment, _LATE)


def _texts(offsets: dict[str, int]) -> dict[str, tuple[str, jit.LateText]]:
    """Kind -> name and text of each native function."""
    from hashlib import sha256

    from flambeau.devices.cpu import jit

    said = f"{jit.sources_identity(_FOLDERS)} {sorted(offsets.items())}"
    mark = sha256(said.encode()).hexdigest()[:16]

    def late(kind: str, name: str) -> jit.LateText:
        def make() -> str:
            from flambeau.tensor.native.text import texts

            return texts.text_of(kind, name, offsets)

        return jit.LateText(make, _FOLDERS)

    names = {kind: f"recorder_{kind}_{mark}" for kind in _KINDS}
    return {kind: (name, late(kind, name)) for kind, name in names.items()}


__all__ = [
    "Library", "Ways", "is_awaited", "library", "make_callable", "ready", "special_value", "stream",
    "when_made",
]  # fmt: skip
