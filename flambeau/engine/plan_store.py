"""Plans kept on disk between processes, so that a known segment is neither lowered nor fused again.

Keeps     a plan is found only under everything planning may read: the records, memory and liveness
          of the segment, the sources that plan, the machine and the switches. What is damaged,
          foreign or lacks a kernel is a miss, never an error. Numbers and text only: no code comes
          from a plan's file. Records whose operators or attributes have no such key are planned.
Touches   devices.cpu.jit (kernels by key), devices.cpu.jit.object_cache; imports planning on a
          miss.
Not here  making plans (planning/), the plans of this process (run.py)."""

from __future__ import annotations

import gc
import hashlib
import marshal
import struct
import sys
from array import array
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout
from flambeau.devices.cpu import features, jit
from flambeau.engine.plan import (
    Explained,
    Plan,
    SegmentFacts,
    number_packer,
    step_starts,
)
from flambeau.engine.signature import Signature
from flambeau.ops.define import REGISTRY

# Of a plan's file. Version 2 of marshal writes equal values as equal bytes.
_FORMAT: Final = 1
_MARSHAL: Final = 2
_SUFFIX: Final = ".plan"
# Types that marshal tells apart, and kinds of parameters that are such values alone.
_ATOMS: Final = frozenset((type(None), int, bool, float, complex, str, bytes))
_POSITIONS: Final = ("tensor", "tensors")
# Under which a layout's memo keeps what is written of it.
_WRITTEN: Final = "written out"
# Folders that decide what the plan of a segment is, its native kernels' texts included.
_SOURCES: Final = ("base", "codegen", "devices", "engine", "ops")
_PLANNING: Final = "flambeau.engine.planning.template"
# Shorter segments are planned as fast as a plan is looked for, once planning has been imported.
FEW_RECORDS: Final = 4
# Plans bound to sizes by a template that a process writes, and writes of short segments: there may
# be thousands, and a short one takes longer to write than to bind.
MAX_BOUND: Final = 256
MAX_SHORT_BOUND: Final = 32
# Segments whose plan came from disk, for planning to know when a form comes again.
MAX_LOADED: Final = 256
_LOADED: Final[deque[SegmentFacts]] = deque(maxlen=MAX_LOADED)


class Statistics:
    """What came from disk and went there, of it plans that a template bound to sizes."""

    __slots__ = ("loaded", "stored", "stored_bound")

    def __init__(self) -> None:
        self.loaded = 0
        self.stored = 0
        self.stored_bound = 0


STATS: Final = Statistics()


def plan_for(facts: SegmentFacts, came_back: bool) -> tuple[Plan, bool]:
    """A plan of the segment, and whether it is new to this process rather than bound to sizes.

    came_back   the segment has a plan whose records are planned apart: it is planned as a whole

    The collector waits meanwhile: what planning makes dies by itself or lives on with the plan,
    and walking the heap for it took two fifths of a program whose sizes are always new."""
    is_collecting = gc.isenabled()
    try:
        gc.disable()
        return _found_or_made(facts, came_back)
    finally:
        if is_collecting:
            gc.enable()


def _found_or_made(facts: SegmentFacts, came_back: bool) -> tuple[Plan, bool]:
    key = None
    n_records = len(facts.keys)
    is_planned_soon = n_records < FEW_RECORDS and _PLANNING in sys.modules
    if CONFIG.keep_plans and not is_planned_soon:
        key = key_of(facts)
        plan = _load(key) if key is not None else None
        if plan is not None and not (came_back and plan.is_apart):
            STATS.loaded += 1
            _LOADED.append(facts)
            return plan, True
    template, plans = _planning()
    plan, is_new = (plans.plan_segment(facts), True) if came_back else template.plan_for(facts)
    most_bound = MAX_BOUND if n_records >= FEW_RECORDS else MAX_SHORT_BOUND
    pays = is_new or STATS.stored_bound < most_bound
    if pays and CONFIG.keep_plans and not sys.is_finalizing():
        key = key or key_of(facts)
        if key is not None:
            _store(key, plan)
            STATS.stored_bound += not is_new
    return plan, is_new


def loaded_like(facts: SegmentFacts) -> list[SegmentFacts]:
    """Segments of the same operators whose plans came from disk; each is told of once."""
    operators = [key[0].operator for key in facts.keys]
    found = [
        each
        for each in tuple(_LOADED)  # a signal handler may add to it
        if len(each.keys) == len(operators) and [key[0].operator for key in each.keys] == operators
    ]
    for each in found:
        with suppress(ValueError):  # nor is it sure that one is still there
            _LOADED.remove(each)
    return found


def forget() -> None:
    """Drop what is known of segments whose plans came from disk."""
    _LOADED.clear()


@cache
def _planning() -> tuple[Any, Any]:
    """What plans, imported on the first miss: it brings the whole code generator."""
    from flambeau.engine.planning import plan as plans
    from flambeau.engine.planning import template

    return template, plans


# Keys ------------------------------------------------------------------------


def key_of(facts: SegmentFacts) -> str | None:
    """Name of the segment's plan on disk; None where a signature has no key."""
    numbers: dict[Signature, int] = {}
    written: list[bytes] = []
    rows: list[tuple[int, ...]] = []
    for key in facts.keys:
        signature = key[0]
        number = numbers.get(signature)
        if number is None:
            own = signature.written
            if own is None:
                own = signature.written = _written(signature)
            if not own:
                return None
            number = numbers[signature] = len(written)
            written.append(own)
        rows.append((number, *key[1:]))
    sources = _environment(
        features.vector_bits(),
        features.n_threads(),
        features.second_cache_bytes(),
        CONFIG.codegen_level,
        CONFIG.fuse_new,
    )
    if not sources:
        return None
    parts: tuple[Any, ...] = (
        sources, written, rows, facts.touched, facts.input_bytes, facts.fresh_bytes,
        sorted(facts.kept),
    )  # fmt: skip
    text = marshal.dumps(parts, _MARSHAL)
    return hashlib.sha256(text).hexdigest()


@cache
def _environment(*switches: int) -> str:
    """What plans depend on beside the segment; "" where the sources cannot be read."""
    sources = jit.sources_identity(_SOURCES)
    parts = (_FORMAT, sys.hexversion, sources, jit.machine_identity(), *switches)
    return " ".join(map(str, parts)) if sources else ""


def _written(signature: Signature) -> bytes:
    """All that lowering sees of a signature; empty where part of it cannot be written down."""
    operator = signature.operator
    if not _is_own(operator):
        return b""
    try:
        parameters = [
            (name, meaning if meaning[0] in _POSITIONS else _plain(meaning))
            for name, meaning in signature.parameters.items()
        ]
        attributes = [
            (name, value if type(value) in _ATOMS else _plain(value))
            for name, value in signature.attributes.items()
        ]
        parts: tuple[Any, ...] = (
            operator.name, parameters, attributes,
            [layout.memo.get(_WRITTEN) or _layout_text(layout) for layout in signature.all_layouts],
            len(signature.layouts), signature.targets, signature.number_format,
        )  # fmt: skip
    except TypeError:
        return b""
    # Bytes: tuples that live on are walked by the collector again and again.
    return marshal.dumps(parts, _MARSHAL)


def _layout_text(layout: Layout) -> bytes:
    place = (layout.shape, layout.strides, str(layout.device), layout.is_conj)
    parts = (layout.dtype.name, *place)
    text = layout.memo[_WRITTEN] = marshal.dumps(parts, _MARSHAL)
    return text


def _is_own(operator: Any) -> bool:
    """Whether the operator's name says what it does: a registered one of flambeau's sources."""
    return type(operator).__module__.startswith("flambeau.ops.") and (
        REGISTRY.get(operator.name) is operator
    )


def _plain(value: Any) -> Any:
    """The value in numbers, text and tuples of them that tell it from all others."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if issubclass(kind, (tuple, list)):
        return (kind.__name__, *[_plain(each) for each in value])
    if kind is dict:
        return ("dict", *[(_plain(name), _plain(each)) for name, each in value.items()])
    if kind is dtype:
        return ("dtype", value.name)
    if kind is Layout:
        return ("layout", _layout_text(value))
    if kind is type and value in (int, float, bool, complex):
        return ("type", value.__name__)
    raise TypeError(f"a {kind.__name__} has no key")


# Files -----------------------------------------------------------------------


def _store(key: str, plan: Plan) -> None:
    steps, notes = plan.explained()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(s[0] for s in steps))}
    keys = jit.keys_of(numbers)
    if keys is None:
        return
    program = array("q", plan.program)
    for start, (name, _, _) in zip(step_starts(program), steps, strict=True):
        program[start] = numbers[name]
    said = ([(numbers[name], sorted(records), units) for name, records, units in steps], notes)
    parts = (
        list(numbers), keys, program.tobytes(), plan.stored_numbers, plan.arena_bytes,
        plan.n_touched, plan.number_format, plan.statements, plan.is_apart,
        marshal.dumps(said, _MARSHAL),
    )  # fmt: skip
    jit.object_store().store(key, marshal.dumps(parts, _MARSHAL), _SUFFIX)
    STATS.stored += 1


def _load(key: str) -> Plan | None:
    content = jit.object_store().load(key, _SUFFIX)
    if content is None:
        return None
    try:
        return _plan_of(*marshal.loads(content))
    except (ValueError, TypeError, EOFError, IndexError, struct.error):
        return None


def _plan_of(
    names: Sequence[str],
    keys: Sequence[str],
    words: bytes,
    stored_numbers: tuple[int, ...],
    arena_bytes: int,
    n_touched: int,
    number_format: str,
    statements: int,
    is_apart: bool,
    said: bytes,
) -> Plan | None:
    addresses = jit.load_kept(dict(zip(names, keys, strict=True)))
    if addresses is None:
        return None
    plan = Plan()
    program = plan.program
    program.frombytes(words)
    starts = step_starts(program)
    for start in starts:
        program[start] = addresses[names[program[start]]]
    plan.stored_numbers = stored_numbers
    plan.stored = sum([1 << 8 * number for number in stored_numbers])
    plan.arena_bytes = arena_bytes
    plan.n_touched = n_touched
    plan.number_format = number_format
    plan.pack_numbers = number_packer(n_touched, number_format)
    plan.n_kernels = len(starts)
    plan.statements = statements
    plan.is_apart = is_apart
    plan.explained = lambda: _explained(names, said)
    return plan


def _explained(names: Sequence[str], said: bytes) -> Explained:
    steps, notes = marshal.loads(said)
    return [(names[number], set(records), units) for number, records, units in steps], notes
