"""LLVM text of a flush: engine/run.py's flush, spelled out for a segment whose plan is known.

Keeps     between the look at what is alive and the run nothing runs Python; a run that comes back
          early is left, whole, in the segment, where Python finds it and goes on.
Touches   writer, parts_text; words of a run's state (devices/cpu/runner/words.py).
Not here  what is known of plans (known.py)."""

from __future__ import annotations

from flambeau.devices.cpu.runner.words import (
    ADDRESSES,
    CALLER_SCRATCH,
    KERNELS_LAUNCHED,
    NUMBERS,
    PROGRAM,
    SLICE_CYCLES,
    STATE_WORDS,
    TEAM_ADDRESS,
    THREADS_USED,
    THREADS_WANTED,
)
from flambeau.devices.cpu.team.text import MAXIMUM_THREADS
from flambeau.tensor.native.flush.parts_text import parts_text
from flambeau.tensor.native.flush.words import PLAN, ROW, ROW_BYTES
from flambeau.tensor.native.tables import CALLABLE, TABLE, Offsets
from flambeau.tensor.native.text.slots_text import replace
from flambeau.tensor.native.text.writer import FALSE, NONE, TRUE, Writer, item, loop, next_of

DONE, LEFT, FAILED = 1, 0, -1  # what a flush says: it ran all; Python has to; an exception is set


def flush_text(name: str, o: Offsets) -> str:
    """i32 flush(table, segment)."""
    return parts_text(o) + _running_text(o) + _leaving_text(o) + _flush_text(name, o)


def caller_text(name: str) -> str:
    """The callable: quick(segment) -> whether it ran all."""
    w = Writer(f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count, ptr %names)")
    table = w.load("%self", CALLABLE["table"])
    flush = w.load(table, TABLE["flush"])
    status = w.new(f"call i32 {flush}(ptr {table}, ptr {w.load('%arguments')})")
    w.branch(w.new(f"icmp slt i32 {status}, 0"), "failed")
    done = w.new(f"sext i32 {status} to i64")
    w.returns(f"ptr {w.call('PyBool_FromLong', done)}")
    w.label("failed")
    w.returns("ptr null")
    return w.text()


class _Flush:
    """@flush being written: places of its frame, and the values its parts share."""

    def __init__(self, w: Writer, o: Offsets) -> None:
        self.w, self.o = w, o
        self.index = w.place("index", "i64")
        self.taken = w.place("taken", "i64")
        self.made_place, self.held_place = w.owner("made"), w.owner("held")
        self.flushed_place = w.owner("flushed")
        self.argument = w.place("argument", "ptr", 2)
        self.threads_place = w.place("threads", "i64")

    def look(self) -> None:
        """See that nothing is out of the ordinary."""
        w, o = self.w, self.o
        self.records = w.load("%segment", o["Segment.records"])
        empty = w.new(f"icmp eq i64 {w.call('PyList_Size', self.records)}, 0")
        w.branch(empty, "left")
        self._see_untouched("left")
        observers = w.call("PyList_Size", w.load("%table", TABLE["observers"]))
        w.branch(w.new(f"icmp ne i64 {observers}, 0"), "left")
        for name in ("timed", "denormals"):
            flag = w.call("PyList_GetItem", w.load("%table", TABLE[name]), "0")
            w.branch(w.same(flag, FALSE), f"not_{name}", "left")
            w.label(f"not_{name}")
        config = w.load("%table", TABLE["config"])
        w.branch(w.same(w.load(config, o["Config.fuse"]), TRUE), "fuses", "left")
        w.label("fuses")
        threads = w.load(config, o["Config.threads"])
        w.store(w.load("%table", TABLE["cores"], "i64"), self.threads_place, 0, "i64")
        w.branch(w.same(threads, NONE), "threads_known", "threads_given")
        w.label("threads_given")
        given = w.call("PyLong_AsSsize_t", threads)
        w.branch(w.new(f"icmp slt i64 {given}, 1"), "left")
        less = w.new(f"icmp slt i64 {given}, {MAXIMUM_THREADS}")
        bounded = w.new(f"select i1 {less}, i64 {given}, i64 {MAXIMUM_THREADS}")
        w.store(bounded, self.threads_place, 0, "i64")
        w.label("threads_known")
        self.threads = w.load(self.threads_place, 0, "i64")

    def _see_untouched(self, otherwise: str) -> None:
        """Nothing of the segment has run."""
        w, o = self.w, self.o
        untouched = w.same(w.load("%segment", o["Segment.run"]), NONE)
        whole = w.same(w.load("%segment", o["Segment.last_uses"]), NONE)
        flushed = w.call("PyLong_AsSsize_t", w.load("%segment", o["Segment.flushed"]))
        both = w.new(f"and i1 {untouched}, {whole}")
        fresh = w.new(f"and i1 {both}, {w.new(f'icmp eq i64 {flushed}, 0')}")
        at = f"untouched_{otherwise}"
        w.branch(fresh, at, otherwise)
        w.label(at)

    def take(self) -> None:
        """Have the lock, the next segment and the memory. Any of these may run Python, which may
        forget the plan: hold what is known of it."""
        w, o = self.w, self.o
        plan = w.local(f"ptr @find_plan(ptr %table, ptr %segment, i64 {self.threads})")
        self.plan = w.needs(plan, "left")
        w.store(w.held(w.load(self.plan, PLAN["held"])), self.held_place)
        self.count = w.load(self.plan, PLAN["count"], "i64")
        w.store(FALSE, self.argument)
        acquire = w.load("%table", TABLE["acquire"])
        got = w.call("PyObject_Vectorcall", acquire, self.argument, "1", "null")
        w.needs(got, "failed")
        w.call("Py_DecRef", got)
        w.branch(w.same(got, TRUE), "locked", "left")
        w.label("locked")
        self.stream = w.load("%segment", o["Segment.stream"])
        is_open = w.same(w.load(self.stream, o["Stream.segment"]), "%segment")
        w.branch(is_open, "turn", "turned")
        w.label("turn")
        made = w.local(f"ptr @new_segment(ptr %table, ptr {self.stream})")
        w.store(w.needs(made, "unlock"), self.made_place)
        w.label("turned")
        self.n_rows = w.load(self.plan, PLAN["n_rows"], "i64")
        self.blocks = w.new(f"alloca ptr, i64 {self.n_rows}, align 16")
        self.rows = w.load(self.plan, PLAN["rows"])
        w.store("0", self.taken, 0, "i64")
        n = loop(w, "row", self.index, self.n_rows)
        row = w.at(self.rows, w.new(f"mul i64 {n}, {ROW_BYTES}"))
        block = w.needs(w.local(f"ptr @take(ptr %table, ptr {row})"), "give_back")
        w.store(block, item(w, self.blocks, n))
        w.store(w.new(f"add i64 {n}, 1"), self.taken, 0, "i64")
        next_of(w, "row", self.index)

    def bind(self) -> None:
        """From here to the run nothing runs Python: see that all is still as it was, and find
        addresses and numbers."""
        w, o = self.w, self.o
        self._see_untouched("give_back")
        w.branch(w.local(f"i1 @still(ptr {self.plan}, ptr %segment)"), "as_before", "give_back")
        w.label("as_before")
        self.n_stored = w.load(self.plan, PLAN["n_stored"], "i64")
        inputs = w.load(self.plan, PLAN["inputs"], "i64")
        more = w.new(f"add i64 {inputs}, {self.n_stored}")
        self.n_addresses = w.new(f"add i64 {more}, 2")
        self.addresses = w.new(f"alloca i64, i64 {self.n_addresses}, align 16")
        known = w.local(
            f"i1 @addresses(ptr %table, ptr {self.plan}, "
            f"ptr {w.load('%segment', o['Segment.inputs'])}, ptr {self.blocks}, "
            f"ptr {self.addresses})"
        )
        w.branch(known, "addressed", "give_back")
        w.label("addressed")
        n_touched = w.load(self.plan, PLAN["n_touched"], "i64")
        n_numbers = w.load(self.plan, PLAN["n_numbers"], "i64")
        self.n_numbers = w.new(f"add i64 {n_touched}, {n_numbers}")
        self.numbers = w.new(f"alloca i64, i64 {self.n_numbers}, align 16")
        fine = w.local(
            f"i1 @numbers(ptr {self.plan}, ptr {w.load('%segment', o['Segment.offsets'])}, "
            f"ptr {self.records}, ptr {self.numbers})"
        )
        w.branch(fine, "numbered", "give_back")
        w.label("numbered")
        flushed = w.call("PyLong_FromSsize_t", self.count)
        w.store(w.needs(flushed, "give_back"), self.flushed_place)

    def run(self) -> None:
        """Close the segment, open the next, and run with the GIL released."""
        w, o = self.w, self.o
        replace(w, "%segment", o["Segment.closed"], w.held(TRUE))
        w.branch(w.is_null(w.load(self.made_place)), "opened")
        replace(w, self.stream, o["Stream.segment"], w.take(self.made_place))
        w.label("opened")
        state = w.new(f"alloca i64, i64 {STATE_WORDS}, align 16")
        self.state = state
        for number in range(STATE_WORDS):
            w.store("0", state, 8 * number, "i64")
        scratch = w.load(self.plan, PLAN["scratch"], "i64")
        w.store(w.load("%table", TABLE["slice"], "i64"), state, 8 * SLICE_CYCLES, "i64")
        w.store(w.load(self.plan, PLAN["program"]), state, 8 * PROGRAM)
        w.store(self.addresses, state, 8 * ADDRESSES)
        w.store(self.numbers, state, 8 * NUMBERS)
        team = w.load(w.load("%table", TABLE["team"]), 0, "i64")
        w.store(team, state, 8 * TEAM_ADDRESS, "i64")
        w.store(self.threads, state, 8 * THREADS_WANTED, "i64")
        w.branch(w.new(f"icmp slt i64 {scratch}, 0"), "scratched")
        block = w.load(item(w, self.blocks, scratch))
        address = w.local(f"i64 @address(ptr %table, ptr {block})")
        w.store(address, state, 8 * CALLER_SCRATCH, "i64")
        w.label("scratched")
        runner = w.load("%table", TABLE["runner"])
        thread = w.call("PyEval_SaveThread")
        status = w.new(f"call i64 {runner}(ptr {state})")
        w.call("PyEval_RestoreThread", thread)
        w.branch(w.new(f"icmp ne i64 {status}, 0"), "early")

    def commit(self) -> None:
        """Hand out the results, count, let go."""
        w, o = self.w, self.o
        w.local(
            f"i32 @hand_out(ptr %segment, ptr {self.plan}, ptr {self.blocks}, i64 {self.n_stored})"
        )
        replace(w, "%segment", o["Segment.flushed"], w.take(self.flushed_place))
        counts = w.load("%table", TABLE["run_counts"])
        _add(w, counts, 0, "1")
        _add(w, counts, 8, self.count)
        counts = w.load("%table", TABLE["runner_counts"])
        _add(w, counts, 0, "1")
        _add(w, counts, 8, w.load(self.state, 8 * KERNELS_LAUNCHED, "i64"))
        used = w.load(self.state, 8 * THREADS_USED, "i64")
        most = w.load(counts, 16, "i64")
        more = w.new(f"icmp sgt i64 {used}, {most}")
        w.store(w.new(f"select i1 {more}, i64 {used}, i64 {most}"), counts, 16, "i64")
        now = w.call("PyList_Size", self.records)
        w.branch(w.new(f"icmp ne i64 {now}, {self.count}"), "late")
        w.local("i32 @let_go(ptr %segment)")
        # One word for all: behind the lock another thread would take it for its own.
        error_word = w.load("%table", TABLE["error"])
        error = w.load(error_word, 0, "i64")
        w.store("0", error_word, 0, "i64")
        _release(w)
        self._give_back_rest("rest")
        w.branch(w.new(f"icmp ne i64 {error}, 0"), "outside", "done")
        w.label("done")
        w.let_go()
        w.returns(f"i32 {DONE}")
        w.label("outside")
        w.call("PyObject_Vectorcall", w.load("%table", TABLE["raise_index"]), "null", "0", "null")
        w.goto("failed")
        w.label("late")
        _release(w)
        self._give_back_rest("late_rest")
        w.goto("left")

    def _give_back_rest(self, name: str) -> None:
        """The arena and the scratch memory. A block that Python made runs Python when it goes, and
        with it perhaps a signal handler: all else is done by now."""
        w = self.w
        n = loop(w, name, self.index, self.n_rows, self.n_stored)
        w.call("Py_DecRef", w.load(item(w, self.blocks, n)))
        next_of(w, name, self.index)


def _flush_text(name: str, o: Offsets) -> str:
    w = Writer(f"define i32 @{name}(ptr %table, ptr %segment)")
    made = _Flush(w, o)
    made.look()
    made.take()
    made.bind()
    made.run()
    made.commit()
    w.label("early")
    w.local(
        f"i32 @leave(ptr %segment, ptr {made.plan}, ptr {made.blocks}, ptr {made.addresses}, "
        f"i64 {made.n_addresses}, ptr {made.numbers}, i64 {made.n_numbers}, ptr {made.state})"
    )
    _release(w)
    w.goto("left")
    w.label("give_back")
    n = loop(w, "taken", made.index, w.load(made.taken, 0, "i64"))
    w.call("Py_DecRef", w.load(item(w, made.blocks, n)))
    next_of(w, "taken", made.index)
    w.goto("unlock")
    w.label("unlock")
    error = [w.place(name) for name in ("kind", "error", "traceback")]
    w.call("PyErr_Fetch", *error)
    _release(w)
    w.call("PyErr_Restore", *[w.load(place) for place in error])
    w.forgive("failed")
    w.goto("left")
    w.label("left")
    w.let_go()
    w.returns(f"i32 {LEFT}")
    w.label("failed")
    w.let_go()
    w.returns(f"i32 {FAILED}")
    return w.text()


def _release(w: Writer) -> None:
    """Let go of the lock."""
    release = w.load("%table", TABLE["release"])
    w.call("Py_DecRef", w.call("PyObject_Vectorcall", release, "null", "0", "null"))


def _add(w: Writer, counts: str, offset: int, more: str) -> None:
    w.store(w.new(f"add i64 {w.load(counts, offset, 'i64')}, {more}"), counts, offset, "i64")


def _running_text(o: Offsets) -> str:
    """@hand_out(segment, plan, blocks, count): blocks to the storages they were taken for, which
    have none."""
    w = Writer("define internal i32 @hand_out(ptr %segment, ptr %plan, ptr %blocks, i64 %count)")
    index = w.place("index", "i64")
    fresh, rows = w.load("%segment", o["Segment.fresh"]), w.load("%plan", PLAN["rows"])
    n = loop(w, "each", index, "%count")
    row = w.at(rows, w.new(f"mul i64 {n}, {ROW_BYTES}"))
    storage = w.call("PyList_GetItem", fresh, w.load(row, ROW["fresh"], "i64"))
    replace(w, storage, o["Storage.block"], w.load(item(w, "%blocks", n)))
    next_of(w, "each", index)
    w.returns("i32 0")
    return w.text()


def _leaving_text(o: Offsets) -> str:
    """@let_go(segment): nobody points at a segment that has run. @leave(...): a run that came back
    early, as the segment's run; the collector waits, for it could run Python."""
    w = Writer("define internal i32 @let_go(ptr %segment)")
    index = w.place("index", "i64")
    for name in ("inputs", "fresh"):
        storages = w.load("%segment", o[f"Segment.{name}"])
        n = loop(w, name, index, w.call("PyList_Size", storages))
        storage = w.call("PyList_GetItem", storages, n)
        own = w.same(w.load(storage, o["Storage.segment"]), "%segment")
        w.branch(own, f"own_{name}", f"next_{name}")
        w.label(f"own_{name}")
        replace(w, storage, o["Storage.segment"], w.held(NONE))
        w.label(f"next_{name}")
        next_of(w, name, index)
    places = w.load("%segment", o["Segment.places"])
    n = loop(w, "place", index, w.call("PyList_Size", places))
    replace(w, w.call("PyList_GetItem", places, n), o["Place.segment"], w.held(NONE))
    next_of(w, "place", index)
    w.returns("i32 0")
    return w.text() + _leave_text(o)


def _leave_text(o: Offsets) -> str:
    w = Writer(
        "define internal i32 @leave(ptr %segment, ptr %plan, ptr %blocks, ptr %addresses, "
        "i64 %n_addresses, ptr %numbers, i64 %n_numbers, ptr %state)"
    )
    index = w.place("index", "i64")
    collected = w.call("PyGC_Disable")
    made = w.call("PyTuple_New", "6")
    n_rows = w.load("%plan", PLAN["n_rows"], "i64")
    blocks = w.call("PyTuple_New", n_rows)
    n = loop(w, "block", index, n_rows)
    w.call("PyTuple_SetItem", blocks, n, w.load(item(w, "%blocks", n)))
    next_of(w, "block", index)
    said = w.new("mul i64 %n_addresses, 8")
    addresses = w.call("PyBytes_FromStringAndSize", "%addresses", said)
    said = w.new("mul i64 %n_numbers, 8")
    numbers = w.call("PyBytes_FromStringAndSize", "%numbers", said)
    state = w.call("PyByteArray_FromStringAndSize", "%state", str(8 * STATE_WORDS))
    plan = w.held(w.load("%plan", PLAN["plan"]))
    count = w.call("PyLong_FromSsize_t", w.load("%plan", PLAN["count"], "i64"))
    for position, value in enumerate((count, plan, blocks, addresses, numbers, state)):
        w.call("PyTuple_SetItem", made, str(position), value)
    replace(w, "%segment", o["Segment.run"], made)
    w.branch(w.new(f"icmp eq i32 {collected}, 0"), "as_it_was")
    w.call("PyGC_Enable")
    w.label("as_it_was")
    w.returns("i32 0")
    return w.text()
