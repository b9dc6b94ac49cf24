"""Plan templates: segments that differ in sizes alone share a plan, made once with Sizes.

Keeps     a template is used only where every guard of its planning holds; what is bound is word for
          word the plan that planning anew would give (FLAMBEAU_CHECK_TEMPLATES=1 compares). Where
          planning with Sizes fails, for whatever reason, the segment is planned as it is.
Touches   plan, apart, fuse, relative, sizes, states, statement.
Not here  the cache of plans of exact signatures and the run (run.py)."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base.dtypes import uint8
from flambeau.base.errors import present
from flambeau.devices.cpu import jit
from flambeau.engine import callsite, plan_store
from flambeau.engine.plan import Explained, Plan, SegmentFacts, step_starts
from flambeau.engine.planning import apart
from flambeau.engine.planning import plan as plans
from flambeau.engine.planning.fuse import NativeCall, fuse
from flambeau.engine.planning.natives import NativeLaunches, launches_of, operands_of
from flambeau.engine.planning.plan import (
    ARENA_ADDRESS,
    ERROR_ADDRESS,
    Arena,
    Draft,
    Planner,
    Step,
    compiled,
    describe,
    loop_steps,
    write_step,
)
from flambeau.engine.planning.states import fresh_root
from flambeau.engine.planning.symbolic import relative
from flambeau.engine.planning.symbolic.sizes import Replay, Size, Tape
from flambeau.engine.planning.symbolic.taken import SizedNative, Taken
from flambeau.engine.signature import Signature
from flambeau.engine.statement import Native

MAX_TEMPLATES: Final = 8  # of one form
# Records in all forms and templates that are remembered, at most about 3 KB each; the least
# recently used go first.
MAX_RECORDS: Final = 40_000
CHECK: Final = [os.environ.get("FLAMBEAU_CHECK_TEMPLATES", "0") == "1"]


class Statistics:
    """How plans came about."""

    __slots__ = ("bound", "made", "refused")

    def __init__(self) -> None:
        self.bound = 0  # by a template
        self.made = 0  # templates
        self.refused = 0  # segments whose templates' guards all failed


STATS: Final = Statistics()
# Why planning with Sizes was not possible, the first few reasons.
FAILURES: Final[dict[str, object]] = {}
MAX_FAILURES: Final = 20


class _Family:
    """Segments of one form: templates, and whether planning with Sizes is worth trying."""

    __slots__ = ("is_plain", "templates")

    def __init__(self) -> None:
        self.templates: list[_Template] = []
        self.is_plain = False


_FAMILIES: dict[tuple[Any, ...], _Family] = {}
_remembered = [0]


def forget() -> None:
    """Drop all templates."""
    apart.forget()
    _FAMILIES.clear()
    _remembered[0] = 0


def plan_for(facts: SegmentFacts) -> tuple[Plan, bool]:
    """A plan of the segment, and whether it was planned for it rather than bound."""
    for each in plan_store.loaded_like(facts):
        _notice(each)
    begun, is_new = _begun(facts, _whole)
    return plans.finish([begun])[0], is_new


def _whole(facts: SegmentFacts, live: list[int]) -> Plan | Draft:
    """What becomes of a segment whose form is new."""
    if apart.pays(facts, live):
        return apart.plan_apart(facts, live, _alone)
    return Draft(facts)


def _alone(facts: SegmentFacts) -> Plan | Draft:
    """One record of a segment whose form is new."""
    return _begun(facts, lambda facts, live: Draft(facts))[0]


def _begun(
    facts: SegmentFacts, anew: Callable[[SegmentFacts, list[int]], Plan | Draft]
) -> tuple[Plan | Draft, bool]:
    """A plan where a template holds, else a new one."""
    live = relative.live_records(facts)
    key, sizes, signatures = relative.segment_form(facts, live)
    if key is None:
        return Draft(facts), True
    family = _FAMILIES.get(key)
    if family is None:
        # A form seen for the first time may be the last one of its kind.
        _remember(key, _Family())
        return anew(facts, live), True
    _FAMILIES.pop(key, None)
    _FAMILIES[key] = family
    for template in family.templates:
        if facts.kept <= template.kept:
            plan = template.bound(facts, sizes)
            if plan is not None:
                others = [each for each in family.templates if each is not template]
                family.templates = [template, *others]
                STATS.bound += 1
                return plan, False
    if family.is_plain:
        return Draft(facts), True
    STATS.refused += 1
    try:
        template = _Template(facts, signatures)
    except Exception as error:
        if not _is_own(error):
            raise
        # An operator that asks for a Python int where a Size has no way to give one.
        if len(FAILURES) < MAX_FAILURES:
            FAILURES[f"{type(error).__name__}: {error}"] = family
        family.is_plain = True
        return Draft(facts), True
    plan = template.bound(facts, sizes)
    if plan is None:
        raise RuntimeError("a template does not hold for the sizes it was made with")
    if len(family.templates) < MAX_TEMPLATES:
        _remembered[0] += len(key)
    family.templates = [template, *family.templates][:MAX_TEMPLATES]
    _drop_oldest()
    STATS.made += 1
    return plan, True


def _notice(facts: SegmentFacts) -> None:
    """A segment whose plan came from disk: its form has been seen."""
    key, _, _ = relative.segment_form(facts, relative.live_records(facts))
    if key is not None and key not in _FAMILIES:
        _remember(key, _Family())


def _is_own(error: BaseException) -> bool:
    """Whether flambeau raised it, not a signal handler or finalizer that came in between."""
    trace = error.__traceback__
    while trace is not None:
        if not callsite.is_internal(trace.tb_frame.f_code):
            return False
        trace = trace.tb_next
    return not isinstance(error, MemoryError)


def _remember(key: tuple[Any, ...], family: _Family) -> None:
    _FAMILIES[key] = family
    _remembered[0] += len(key)
    _drop_oldest()


def _drop_oldest() -> None:
    for key in list(_FAMILIES) if _remembered[0] > MAX_RECORDS else ():
        if _remembered[0] <= MAX_RECORDS * 3 // 4 or len(_FAMILIES) < 2:
            break
        family = _FAMILIES.pop(key, None)
        if family is not None:
            _remembered[0] -= len(key) * (1 + len(family.templates))


def remembered() -> int:
    """Records in all forms and templates."""
    return _remembered[0]


# Templates -----------------------------------------------------------------------


class _Loops:
    """Kernels of loops in a row: their words but for what depends on sizes.

    fills     (position, value) for words; in_arena (position, storage) where an offset is added
    uses      (storage, unit) in order
    kernels   (name, records)
    """

    __slots__ = ("fills", "in_arena", "kernels", "max_arguments", "scratch", "uses", "words")

    def __init__(self) -> None:
        self.words: list[Any] = []
        self.fills: list[tuple[int, int]] = []
        self.in_arena: list[tuple[int, int]] = []
        self.uses: list[tuple[int, int]] = []
        self.kernels: list[tuple[str, set[int]]] = []
        self.max_arguments = 0
        self.scratch: list[int] = []


class _NativePart:
    """A call of a native statement, one of template.natives.

    operands   as natives.operands_of: (storage, index of its address or None, index of its offset
               among the numbers, bytes of an element)
    results    storages written
    workspace  its storage
    """

    __slots__ = ("number", "operands", "records", "results", "unit", "workspace")

    def __init__(
        self, call: NativeCall, number: int, unit: int, workspace: int, planner: Planner
    ) -> None:
        storage_of = planner.storage_of
        self.number = number
        self.records = call.records
        self.unit = unit
        self.workspace = storage_of[workspace]
        self.results = [storage_of[call.references[r]] for r in call.native.results]
        self.operands = [
            (storage_of[slot], planner.address_of.get(storage_of[slot]), *planner.offset_of(slot))
            for slot in operands_of(call.native, call.references, workspace)
        ]


class _Template:
    """A plan with Sizes, cut down to what binding needs."""

    def __init__(self, facts: SegmentFacts, signatures: dict[Signature, int]) -> None:
        self.kept = frozenset(facts.kept)
        tape = Tape()
        meant = {signature: relative.sized(signature, tape) for signature in signatures}
        for signature in meant.values():
            relative.complete(signature)
        self.planner = planner = Planner(facts, meant)
        fused = fuse(planner.instantiate(), planner.storage_of, fresh_root())
        self.facts = Plan()  # what of a plan does not depend on sizes
        describe(self.facts, planner)
        self.n_statements = fused.n_statements
        self.notes = fused.refusals
        taken = Taken(tape)
        texts: dict[str, jit.Text] = {}
        self.parts: list[_Loops | _NativePart] = []
        natives: dict[Native, int] = {}
        for number, unit in enumerate(fused.units):
            if isinstance(unit, NativeCall):
                workspace = planner.new_temporary(0, uint8)
                # Calls of one signature are one statement: its maker is asked once.
                own = natives.setdefault(unit.native, len(natives))
                self.parts.append(_NativePart(unit, own, number, workspace, planner))
            else:
                made = loop_steps(planner, unit, texts, fused.in_memory)
                self._add_loops(made, number, texts, taken)
        self.natives = [SizedNative(native, taken) for native in natives]
        first = planner.n_storages
        self.temporaries = [taken.index(n) for n in planner.arena.n_bytes[first:]]
        self.replay = Replay(tape, taken.wanted)
        self._renumber(self.replay.place)
        # What held Sizes is not needed any more.
        planner.facts = None  # type: ignore[assignment]
        planner.meant = None
        planner.arena.n_bytes = []
        self.replay.place = {}

    def _add_loops(
        self, steps: list[Step], unit: int, texts: dict[str, jit.Text], taken: Taken
    ) -> None:
        part = self.parts[-1] if self.parts else None
        if not isinstance(part, _Loops):
            part = _Loops()
            self.parts.append(part)
        addresses = compiled(texts)
        planner = self.planner
        for step in steps:
            start = len(part.words)
            write_step(part.words, part.in_arena, step, addresses[step.name], planner)
            for position in range(start, len(part.words)):
                word = part.words[position]
                if isinstance(word, Size):
                    part.fills.append((position, taken.index(word)))
                    part.words[position] = 0
            for _, slot, _ in step.pointers:
                part.uses.append((planner.storage_of[slot], unit))
            part.kernels.append((step.name, step.records))
            part.max_arguments = max(part.max_arguments, len(step.words))
            part.scratch.append(taken.index(step.scratch_bytes))

    def _renumber(self, place: dict[int, int]) -> None:
        self.temporaries = [place[index] for index in self.temporaries]
        for part in self.parts:
            if isinstance(part, _Loops):
                part.fills = [(position, place[index]) for position, index in part.fills]
                part.scratch = sorted({place[index] for index in part.scratch})
        for native in self.natives:
            native.renumber(place)

    def bound(self, facts: SegmentFacts, sizes: list[int]) -> Plan | None:
        """The plan for these sizes, or None where a guard fails."""
        values = self.replay.values(sizes)
        if values is None:
            return None
        planner = self.planner
        natives: list[NativeLaunches | None] = [None] * len(self.natives)
        n_bytes = [*facts.input_bytes, *facts.fresh_bytes]
        n_bytes += [values[index] for index in self.temporaries]
        arena = Arena(planner.arena.kept, n_bytes)
        words: list[int] = [0, 0, 0, 0]
        in_arena: list[tuple[int, int]] = []
        n_kernels = max_arguments = scratch_bytes = 0
        for part in self.parts:
            if isinstance(part, _Loops):
                start = len(words)
                words += part.words
                for position, index in part.fills:
                    words[start + position] = values[index]
                for position, storage in part.in_arena:
                    in_arena.append((start + position, storage))
                for storage, unit in part.uses:
                    arena.use(storage, unit)
                n_kernels += len(part.kernels)
                max_arguments = max(max_arguments, part.max_arguments)
                for index in part.scratch:
                    scratch_bytes = max(scratch_bytes, values[index])
                continue
            launches = natives[part.number]
            if launches is None:
                launches = launches_of(self.natives[part.number].valued(values))
                natives[part.number] = launches
            n_bytes[part.workspace] = launches.workspace_bytes
            _add_native(part, launches, arena, words, in_arena)
            n_kernels += len(launches.kernels)
            for kernel in launches.kernels:
                max_arguments = max(max_arguments, len(kernel.words))
                scratch_bytes = max(scratch_bytes, kernel.scratch_bytes)
        words[:3] = n_kernels, max_arguments, scratch_bytes
        plan = Plan()
        if arena.lifetimes:
            offsets, plan.arena_bytes = arena.placed()
            for position, storage in in_arena:
                words[position] += offsets[storage]
        plan.stored, plan.stored_numbers = self.facts.stored, self.facts.stored_numbers
        plan.n_touched, plan.pack_numbers = self.facts.n_touched, self.facts.pack_numbers
        plan.number_format = self.facts.number_format
        plan.n_kernels = n_kernels
        plan.statements = self.n_statements
        program = plan.program = array("q", words)
        plan.explained = lambda: self._explained(natives, program)
        if CHECK[0]:
            self._compare(plan, facts)
        return plan

    def _explained(
        self, natives: Sequence[NativeLaunches | None], program: Sequence[int]
    ) -> Explained:
        """What debug.explain shows of a plan with these native kernels."""
        kernels: list[tuple[str, set[int]]] = []
        for part in self.parts:
            if isinstance(part, _Loops):
                kernels += part.kernels
            else:
                launches = present(natives[part.number], "what a native call launches")
                kernels += [(kernel.name, part.records) for kernel in launches.kernels]
        steps = [
            (name, records, program[start + 1])
            for (name, records), start in zip(kernels, step_starts(program), strict=True)
        ]
        return steps, self.notes

    def _compare(self, plan: Plan, facts: SegmentFacts) -> None:
        """Raise where planning anew gives another program."""
        kept = set(self.kept)
        exact = plans.plan_segment(
            SegmentFacts(facts.keys, facts.touched, facts.input_bytes, facts.fresh_bytes, kept)
        )
        same = exact.program == plan.program and exact.arena_bytes == plan.arena_bytes
        if not same or exact.stored_numbers != plan.stored_numbers:
            raise AssertionError(
                f"a template gives another program: {list(plan.program)} is not "
                f"{list(exact.program)}"
            )


def _add_native(
    part: _NativePart,
    launches: NativeLaunches,
    arena: Arena,
    words: list[int],
    in_arena: list[tuple[int, int]],
) -> None:
    """Append the steps of a call, as plan.write_step does; its storages are in use."""
    addresses = compiled(launches.texts)
    use, operands, unit = arena.use, part.operands, part.unit
    for storage in part.results:
        use(storage, unit)
    for kernel in launches.kernels:
        own, pointers, errors = kernel.words, kernel.pointers, kernel.errors
        words += (
            addresses[kernel.name], kernel.n_units, kernel.chunk_units, len(own),
            len(pointers) + len(errors), kernel.scratch_bytes,
        )  # fmt: skip
        words += own
        for position, number, n_bytes in pointers:
            storage, place, offset, scale = operands[number]
            use(storage, unit)
            if place is None:
                place = ARENA_ADDRESS
                in_arena.append((len(words) + 2, storage))
            words += (position, place, n_bytes, offset, scale)
        for position in errors:
            words += (position, ERROR_ADDRESS, 0, -1, 0)
