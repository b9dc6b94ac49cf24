"""The native recorder leaves nothing behind: references, errors, interrupts, threads, fallbacks."""

import copy
import gc
import inspect
import pickle
import signal
import sys
import threading
import weakref

import pytest

import flambeau as torch
from flambeau.base.layout import contiguous
from flambeau.engine import stream
from flambeau.gradients import graph
from flambeau.tensor import functions
from flambeau.tensor.binding import Binding
from flambeau.tensor.native import callables, layout, library

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native recorder here")


def programs():
    x, w = torch.randn(3, 4), torch.randn(3, 4)
    g = torch.randn(3, 4, requires_grad=True)
    v = torch.randn(3, 4)[1]

    def backward():
        ((g * w + 1).relu().mean(0, keepdim=True)[0] ** 2).sum().backward()
        g.grad = None

    def view_history():
        h = (g * 2)[1]
        return (h.reshape(2, 2) + 1).transpose(0, 1)

    def no_grad():
        with torch.no_grad():
            x.add_(w).mul_(0.5)
            x[0].sub_(1.0)

    return {
        "binary": lambda: x + w, "number": lambda: x * 0.5, "special": lambda: x**2,
        "unary": lambda: x.tanh(), "general": lambda: x.mean(-1, keepdim=True),
        "named": lambda: torch.softmax(x, dim=-1), "sequence": lambda: torch.stack([x, w]),
        "gradient": lambda: g * w, "three": lambda: torch.where(x > 0, g, w),
        "view": lambda: x.view(4, 3), "getitem": lambda: x[1], "negative": lambda: x[-1],
        "results": lambda: x.topk(2), "results_history": lambda: g.max(1)[0],
        "norm": lambda: torch.nn.functional.layer_norm(g, (4,)),
        "parts": lambda: [each.view(-1) for each in (g * 1).split(2, 1)[0].unbind(0)],
        "touch": lambda: v + 1, "write": no_grad, "backward": backward, "history": view_history,
    }  # fmt: skip


@pytest.fixture(scope="module")
def only_new_objects():
    """The collector sees nothing that was there before: earlier tests leave millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("only_new_objects")
@pytest.mark.parametrize("name", list(programs()))
def test_references_are_exact(name):
    run = programs()[name]
    watched = [
        None, True, False, 0, (), torch.Tensor, contiguous((3, 4), torch.float32), run.__code__,
        stream.current(), functions.add, graph.NOTHING,
    ]  # fmt: skip

    def settle():
        stream.current().synchronize("test")
        gc.collect()

    def rounds(count):
        for _ in range(count):
            run()
        settle()
        return [sys.getrefcount(each) for each in watched], len(gc.get_objects())

    rounds(3000)  # the plans of every cut there will be are kept from here on
    before, objects = rounds(300)
    after, more = rounds(3000)
    for old, new in zip(before, after, strict=True):
        assert abs(new - old) < 1000  # plans name small numbers; one a round would be 3000
    assert abs(more - objects) < 1000


def test_an_error_records_nothing():
    x, y = torch.ones(3), torch.ones(4)
    count = len(stream.current().segment.records)
    for wrong in (
        lambda: x + y, lambda: x.mean(5), lambda: torch.stack([x, y]), lambda: x[7],
        lambda: x.view(2), lambda: x.add_(y), lambda: torch.softmax(x, dim=3), lambda: x + "a",
        lambda: x.sum(nothing=1), lambda: torch.where(x > 0, x, y), lambda: x + 2**70,
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError, OverflowError)):
            wrong()
    assert len(stream.current().segment.records) - count <= 2  # x > 0, before where's error
    assert (x + 1).tolist() == [2, 2, 2]


# What a handler raises inside a __del__ Python itself drops, with a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_lose_nothing():
    calls, interrupts, armed = [], [], []

    def handler(*_):
        calls.append(float((torch.ones(3) + len(calls)).sum()))
        armed.clear()
        if len(calls) % 3 == 0 and len(interrupts) < 60:
            raise KeyboardInterrupt

    g = torch.ones(4, requires_grad=True)
    state = {"x": torch.ones(4), "count": 0}

    def work():
        y = state["x"] + 1
        state["x"] = y
        state["count"] += 1
        (g * y).sum()
        if state["count"] % 50 == 0:
            (g * 1.0).sum().backward()

    def until_interrupted():
        while True:
            if not armed:  # so that no alarm comes while an interrupt is being handled
                armed.append(True)
                signal.setitimer(signal.ITIMER_REAL, 0.0007)
            work()

    for _ in range(60):
        work()  # everything there is to import and to compile
    before = signal.signal(signal.SIGALRM, handler)
    try:
        while len(interrupts) < 60:
            try:
                until_interrupted()
            except KeyboardInterrupt:
                interrupts.append(state["count"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    x, count = state["x"], state["count"]
    assert count <= x[0].item() - 1 + 60  # an interrupt may fall between two lines
    assert x.tolist() == [x[0].item()] * 4
    assert calls == [3.0 * (n + 1) for n in range(len(calls))]


def test_collector_may_record_at_any_allocation():
    seen = []

    class Noisy:
        def __init__(self):
            self.me = self

        def __del__(self):
            seen.append((torch.ones(2) * 3).sum())

    x = torch.zeros(4)
    threshold = gc.get_threshold()
    gc.set_threshold(7)
    try:
        for _ in range(600):
            Noisy()
            x = x + 1
    finally:
        gc.set_threshold(*threshold)
    assert x.tolist() == [600.0] * 4
    assert seen
    assert all(each.item() == 6 for each in seen)


def test_threads_have_streams_of_their_own():
    results = {}

    def work(number):
        x = torch.full((3,), float(number))
        for _ in range(500):
            x = x + number
        results[number] = x.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {n: [float(n * 501)] * 3 for n in range(1, 6)}


def test_callables_behave_like_functions():
    assert copy.deepcopy(torch.tanh) is torch.tanh
    assert pickle.loads(pickle.dumps(torch.add)) is torch.add
    assert torch.tanh.__name__ == "tanh"
    assert inspect.isroutine(torch.tanh)
    assert weakref.ref(torch.tanh)() is torch.tanh
    x = torch.ones(2)
    bound = x.add
    assert bound(1).tolist() == [2, 2]
    assert torch.Tensor.add(x, 1).tolist() == [2, 2]
    assert inspect.signature(torch.tanh) is not None
    assert next(map(torch.tanh, [torch.zeros(1)])).tolist() == [0]


def test_subclasses_and_other_operands():
    class Mine(torch.Tensor):
        pass

    x = torch.nn.Parameter(torch.ones(2))
    assert (x * 2).requires_grad
    assert type(x * 2) is torch.Tensor
    assert (torch.ones(2) + True).tolist() == [2, 2]
    assert torch.ones(2).__add__("a") is NotImplemented

    class Right:
        def __radd__(self, other):
            return "right"

    assert torch.ones(2) + Right() == "right"


def test_results_of_inference_mode_are_marked():
    with torch.inference_mode():
        x = torch.ones(2) + 1
        y = torch.softmax(x, -1)
    assert x.is_inference()
    assert y.is_inference()


def test_many_layouts_evict_and_stay_right():
    for size in range(1, 400):
        x = torch.ones(size)
        assert (x + x).shape == (size,)
        assert (x * 2).sum().shape == ()
    assert (torch.ones(5) + torch.ones(5)).tolist() == [2] * 5


def test_unknown_layouts_fall_back(monkeypatch):
    def refuse():
        raise layout.UnknownLayoutError("another Python")

    monkeypatch.setattr(layout, "check_build", refuse)
    monkeypatch.setattr(library, "_FOUND", [])
    assert library.library() is None
    assert callables.walk() is None
    assert callables.unary(None, len, {}) is len


def test_several_views_at_once():
    x = torch.arange(24.0).reshape(4, 6).clone()
    tracked = (x * 1).requires_grad_()
    for _ in range(3):
        for given in (x, x[1:], x.t()):
            expected = [given[n].tolist() for n in range(given.shape[0])]
            assert [each.tolist() for each in given.unbind(0)] == expected
            assert type(given.unbind(0)) is tuple
            parts = given.split(3, 1)
            assert tuple(parts[0].shape) == (given.shape[0], 3)
            assert parts[-1]._base is (x if given is x else given._base)
        first, second = tracked.split(2)
        (first.sum() * 2 + second.prod()).backward()
        assert tracked.grad[0].tolist() == [2.0] * 6
        assert (first.grad_fn.name(), first.output_nr) == (second.grad_fn.name(), 0)
        assert second.output_nr == 1
        tracked.grad = None
        with torch.no_grad():
            third, _ = tracked.split(2)
            assert third.requires_grad
            assert third._creation is not None
        y = x.clone()
        y.unbind(1)[2].zero_()
        assert y[:, 2].tolist() == [0.0] * 4
    assert torch.ones(0, 3).unbind(0) == ()


def test_views_of_several_views_keep_their_mark(monkeypatch):
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()

    def parts():
        first, second = (x * 2).split(3, 1)
        return first.view(4, 3, 1).transpose(0, 1), second[1]

    for _ in range(3):
        parts()
    with monkeypatch.context() as patch:
        patch.setattr(Binding, "call_view", None)  # known calls are native code's alone
        turned, row = parts()
    (turned.sum() + row.sum() * 3).backward()
    assert x.grad.tolist() == [[2.0] * 3 + [0.0] * 3, [2.0] * 3 + [6.0] * 3] + 2 * [
        [2.0] * 3 + [0.0] * 3
    ]
    assert [type(turned.grad_fn).__name__, type(row.grad_fn).__name__] == [
        "TransposeBackward0", "SelectBackward0",
    ]  # fmt: skip
    for view in (turned, row):
        with pytest.raises(RuntimeError, match="is the output of a function that returns multiple"):
            view.add_(1)


def test_several_results_are_recorded_alike(monkeypatch):
    x = torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], requires_grad=True)
    for _ in range(3):
        x.max(1), x.topk(2), x.sort()
        torch.nn.functional.layer_norm(x, (3,))
    with monkeypatch.context() as patch:
        patch.setattr(Binding, "recorded", None)
        values, places = x.max(1)
        largest, _ = x.topk(2)
    assert (values.tolist(), places.tolist()) == ([3.0, 6.0], [0, 1])
    assert (values.output_nr, values.grad_fn.name()) == (0, "MaxBackward0")
    assert not places.requires_grad
    (values.sum() + 2 * largest[:, 1].sum()).backward()
    assert x.grad.tolist() == [[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]]
    with torch.no_grad():
        assert x.sort()[0].grad_fn is None
    with torch.inference_mode():
        assert all(each.is_inference() for each in x.topk(1))
    # What the pending record reads may be written afterwards.
    with torch.no_grad():
        y = x.detach().clone()
        kept = y.sort()
        y.zero_()
    assert kept[1].tolist() == [[1, 2, 0], [0, 2, 1]]


def test_several_views_are_not_kept():
    x = torch.ones(3, 2)
    x.unbind()
    before = [sys.getrefcount(each) for each in (x, x._storage, x._layout)]
    for _ in range(1000):
        x.unbind()
    assert [sys.getrefcount(each) for each in (x, x._storage, x._layout)] == before


def test_sequences_are_lists_and_tuples():
    rows = [torch.ones(3), torch.zeros(3)]
    for _ in range(3):
        assert torch.stack(rows).shape == torch.cat(tuple(rows)).reshape(2, 3).shape
        with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
            torch.stack(torch.zeros(2, 3))
        with pytest.raises(TypeError, match="must be tuple of Tensors, not generator"):
            torch.stack(row for row in rows)
