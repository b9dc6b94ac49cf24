"""Signals, exceptions from their handlers, finalizers and collector callbacks, at any moment.

A timer of ever other length strikes while something is recorded, planned, compiled, run or
committed; afterwards every tensor has its value, the next operation works, nothing is held."""

from __future__ import annotations

import gc
import importlib
import random
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.debug
from flambeau.engine import plan_cache, run, stream
from flambeau.engine.planning import states
from flambeau.engine.segment import Segment
from flambeau.engine.storage import Storage

# Python swallows what a signal handler raises within a __del__ of ours (and says so).
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Struck(Exception):
    """What a handler raises."""


@contextmanager
def alarm(handler: Callable[[], None]) -> Iterator[Callable[[float], None]]:
    """Run `handler` when the timer strikes; yields what sets it, in seconds, 0 for never."""
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def objects_alive() -> tuple[int, int]:
    """Storages and segments in memory."""
    stream.current().synchronize("a test")
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    return kinds.count(Storage), kinds.count(Segment)


def forget() -> None:
    """Let the next flush plan from the beginning."""
    run.forget_plans()
    states.forget()


class Ledger:
    """A program whose tensors count its own statements.

    `done` statements have returned; the one under way has happened or has not, all of it.
    """

    def __init__(self) -> None:
        self.x = torch.zeros(4)
        self.rows = torch.zeros(3, 5)
        self.done = 0
        self.written = 0
        self.kept: list[tuple[Any, float]] = []

    def step(self) -> None:
        """Statements of every kind of record; x grows by 1 each turn."""
        x, before = self.x, float(self.done)
        y = x + 1
        self.kept.append((y, before + 1))
        z = torch.stack([y, y * 2]).sum(0)
        self.kept.append((z, 3 * (before + 1)))
        self.kept.append((torch.softmax(x, 0) * 4, 1.0))
        x.add_(1)
        self.done += 1
        self.rows[self.written % 3] = float(self.written)
        self.written += 1

    def backward(self) -> None:
        """A gradient over pending tensors."""
        w = torch.ones(4, requires_grad=True)
        (w * self.x * 2).sum().backward()
        self.kept.append((w.grad / 2 - self.x + self.done, float(self.done)))

    def check(self) -> None:
        """Every tensor has the value of what happened."""
        found = self.x.tolist()
        assert found[0] in (self.done, self.done + 1)
        assert found == [found[0]] * 4
        self.done = int(found[0])
        for tensor, value in self.kept:
            assert tensor.tolist() == [pytest.approx(value)] * 4
        self.kept.clear()
        rows = self.rows.tolist()
        assert all(row == [row[0]] * 5 for row in rows)
        last = self.written
        assert rows[last % 3][0] in (last, max(last - 3, 0))
        self.written += rows[last % 3][0] == last > 0


def test_an_exception_from_a_handler_anywhere() -> None:
    """Recording, planning and running are struck; each statement happened whole or not at all."""
    ledger = Ledger()
    for _ in range(3):
        ledger.step()
        ledger.backward()
    ledger.check()
    choice = random.Random(1)
    struck = 0
    armed = [False]

    def handler() -> None:
        if armed[0]:
            armed[0] = False
            raise Struck

    def work(turn: int) -> None:
        # A function of its own: Python 3.13 leaves a loop's jump back out of the `try` around it.
        while armed[0]:
            ledger.step()
            if turn % 2:
                ledger.backward()
            if len(ledger.kept) > 20:
                ledger.kept[0][0].tolist()
                del ledger.kept[:15]

    before = objects_alive()
    hook, sys.unraisablehook = sys.unraisablehook, lambda *_: None  # pytest's keeps frames
    with alarm(handler) as strike:
        for turn in range(150):
            if turn % 3 == 0:
                forget()
            armed[0] = True
            try:
                strike(choice.uniform(1e-5, 4e-3))
                work(turn)
            except Struck:
                struck += 1
            armed[0] = False
            strike(0)
            # Struck between the end of __enter__ and the block, `with` never calls __exit__.
            torch.set_grad_enabled(True)
            ledger.check()
    sys.unraisablehook = hook
    assert struck >= 100
    after = objects_alive()
    assert after[0] - before[0] < 50
    assert after[1] - before[1] < 5


def test_a_handler_that_uses_what_it_interrupts() -> None:
    """It reads, writes and extends tensors of the segment it came into, and returns."""
    x = torch.zeros(4)
    hits = [0]
    seen: list[tuple[Any, float]] = []
    choice = random.Random(2)
    values: list[Any] = [x]

    def handler() -> None:
        hits[0] += 1
        kind = hits[0] % 4
        newest = values[-1]
        if kind == 0:
            newest.sum().item()
        elif kind == 1:
            seen.append((x[1:3] * 0 + 5, 5.0))
        elif kind == 2:
            x.add_(0).mul_(1)
            (newest * 2).tolist()
        else:
            torch.stack([x, newest]).sum()
        strike(choice.uniform(2e-4, 2e-3))

    with alarm(handler) as strike:
        strike(1e-3)
        until = time.monotonic() + 3
        count = 0
        while hits[0] < 500 and time.monotonic() < until:
            if count % 40 == 0:
                forget()
            x.add_(1)
            count += 1
            y = x * 2 + x[0]
            values.append(y)
            x[2:].add_(1)
            x[2:].sub_(1)
            if count % 7 == 0:
                assert y.tolist() == [3.0 * count] * 4
                values[:] = [y]
        strike(0)
    assert hits[0] > 50
    assert x.tolist() == [float(count)] * 4
    for tensor, value in seen:
        assert tensor.tolist() == [value] * 2


def test_strikes_while_kernels_compile(tmp_path: Path) -> None:
    """Kernels nobody has compiled before; no interrupt leaves one half made."""
    choice = random.Random(3)
    armed = [False]

    def handler() -> None:
        if armed[0]:
            armed[0] = False
            raise Struck

    names = ["exp", "sin", "tanh", "sqrt", "abs", "neg", "sigmoid", "floor"]
    struck = 0
    with alarm(handler) as strike, flambeau.debug.cache_dir(str(tmp_path)):
        for _ in range(40):
            x = torch.ones(100)
            chain = [choice.choice(names) for _ in range(5)]
            armed[0] = True
            y = z = None
            try:
                strike(choice.uniform(1e-4, 3e-2))
                y = x
                for name in chain:
                    y = getattr(torch, name)(y)
                z = y[:5].clone()
                z.tolist()
            except Struck:
                struck += 1
            armed[0] = False
            strike(0)
            if z is not None:
                assert str(z.tolist()) == str(y[:5].tolist())
            assert x.sum().item() == 100.0
    assert struck > 5


def test_strikes_while_long_kernels_run() -> None:
    """A run is left in the middle and gone on with later: in-place work is done exactly once."""
    armed = [False]

    def handler() -> None:
        if armed[0]:
            armed[0] = False
            raise Struck

    x = torch.zeros(1_000_000)
    struck = 0
    expected = 0.0
    with alarm(handler) as strike:
        for turn in range(8):
            armed[0] = True
            try:
                for _ in range(12):
                    x.add_(torch.sin(x).abs().exp().sub_(torch.exp(torch.sin(x).abs()))).add_(1)
                    expected += 1
                strike(0.001 * turn + 0.0005)
                x.sum().item()
                time.sleep(0.05)
            except Struck:
                struck += 1
            armed[0] = False
            strike(0)
            assert x[::250_000].tolist() == [expected] * 4
    assert struck == 8


def test_a_handler_that_reads_in_the_middle_of_a_long_run() -> None:
    x = torch.zeros(1_000_000)
    seen = []

    def handler() -> None:
        seen.append(x[7].item())

    with alarm(handler) as strike:
        for turn in range(8):
            for _ in range(12):
                x.add_(torch.tanh(torch.exp(torch.sin(x))) * 0 + 1)
            strike(0.001 * turn + 0.0005)
            assert x[-1].item() == 12.0 * (turn + 1)
            while len(seen) <= turn:
                time.sleep(0.001)
            strike(0)
    assert seen == [12.0 * (n + 1) for n in range(8)]


def test_strikes_while_explaining() -> None:
    """Kernels timed one by one are run once too."""
    seen = []
    with flambeau.debug.explain(), alarm(lambda: seen.append(x[0].item())) as strike:
        x = torch.zeros(2_000_000)
        for turn in range(4):
            for _ in range(6):
                x.add_(1)
                x[::2].add_(torch.sin(x)[::2] * 0)
            strike(0.002 * turn + 0.001)
            assert x.sum().item() == x.numel() * 6.0 * (turn + 1)
            time.sleep(0.01)
    assert seen == [6.0 * (n + 1) for n in range(4)]


def test_finalizers_that_use_tensors() -> None:
    """__del__ and weakref callbacks record, read and write in the middle of other records."""
    total = torch.zeros(3)
    kept: list[Any] = []
    references: list[Any] = []

    class Noisy:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor
            self.me = self  # only the collector finds it

        def __del__(self) -> None:
            total.add_(1)
            kept.append(self.tensor * 2)
            if len(kept) % 5 == 0:
                kept[-1].tolist()

    def gone(_: Any) -> None:
        kept.append(total * 0 + 2)

    class Thing:
        pass

    thresholds = gc.get_threshold()
    gc.set_threshold(3, 1, 1)
    made = 0
    try:
        x = torch.ones(3)
        for number in range(400):
            Noisy(x)
            made += 1
            thing = Thing()
            thing.me = thing  # type: ignore[attr-defined]
            references.append(weakref.ref(thing, gone))
            del thing
            y = x * 1
            z = torch.stack([y, x]).sum(0)
            y.add_(z)
            w = torch.ones(3, requires_grad=True)
            (w * y).sum().backward()
            assert w.grad.tolist() == [3.0] * 3
            if number % 50 == 0:
                forget()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert total.tolist() == [float(made)] * 3
    assert len(kept) == 2 * made
    assert all(tensor.tolist() == [2.0] * 3 for tensor in kept)


def test_collector_callbacks_that_use_tensors() -> None:
    x = torch.zeros(2)
    calls = [0]

    def callback(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            calls[0] += 1
            x.add_(1)
            if calls[0] % 3 == 0:
                x.sum().item()

    thresholds = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(400, 2, 2)  # above what a callback makes: it would never end
    try:
        y = torch.ones(2)
        for number in range(1000):
            y = y * 1.0 + 0.0
            if number % 100 == 0:
                forget()
        assert y.tolist() == [1.0, 1.0]
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*thresholds)
    assert calls[0] > 10
    assert x.tolist() == [float(calls[0])] * 2


def test_an_observer_that_fails_loses_nothing() -> None:
    def observer(*_: Any) -> None:
        raise Struck

    x = torch.ones(3) + 1
    x.add_(1)
    run.OBSERVERS.append(observer)
    try:
        with pytest.raises(Struck):
            x.tolist()
    finally:
        run.OBSERVERS.remove(observer)
    assert x.tolist() == [3.0] * 3


def test_nothing_stays_behind() -> None:
    """After an error in planning the segment is kept; when its tensors go, so does it."""
    before = objects_alive()
    for _ in range(20):
        forget()
        x = torch.ones(5) * 2
        segment = stream.current().segment
        original, plan_cache.plan_for = plan_cache.plan_for, _failing
        try:
            with pytest.raises(Struck):
                x.tolist()
        finally:
            plan_cache.plan_for = original
        assert stream.current().segment is not segment
        assert (x + 1).tolist() == [3.0] * 5
        y = x * 3
        del x, segment
        assert y.tolist() == [6.0] * 5
    del y
    after = objects_alive()
    assert after[0] - before[0] <= 2
    assert after[1] - before[1] <= 1


def _failing(*_: Any) -> None:
    raise Struck


def test_an_import_that_is_broken_off_begins_again() -> None:
    """Operators' files are imported at first use; a strike leaves some of a file registered."""
    from flambeau.ops import names
    from flambeau.ops.define import REGISTRY

    file = names.FILES["square"]
    first = REGISTRY["square"]
    module = sys.modules.pop(f"flambeau.ops.{file}")
    try:
        importlib.import_module(f"flambeau.ops.{file}")
        assert REGISTRY["square"] is first
    finally:
        sys.modules[f"flambeau.ops.{file}"] = module
