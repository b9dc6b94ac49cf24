"""torch.autograd.profiler: work counts where it was asked for, and nothing changes."""

import json
import re

import pytest

import flambeau as torch
from flambeau.autograd import profiler
from flambeau.engine import run

DATA = torch.arange(64).reshape(8, 8) / 7


def test_work_counts_in_the_block_that_asked_for_it():
    with profiler.profile() as seen:
        with profiler.record_function("first"):
            left = DATA.exp()
            with profiler.record_function("inner"):
                right = DATA.sin()
        with profiler.record_function("second"):
            total = left + right
        kept = total.tolist()
    assert kept == (DATA.exp() + DATA.sin()).tolist()
    parents = {e.name: e.cpu_parent and e.cpu_parent.name for e in seen.function_events}
    wanted = {"first": None, "inner": "first", "second": None, "aten::exp": "first"}
    assert parents == {**wanted, "aten::sin": "inner", "aten::add": "second"}
    first, inner = (e for e in seen.function_events if e.name in ("first", "inner"))
    assert first.cpu_time_total >= inner.cpu_time_total > 0


def test_kernel_time_is_shared_by_what_fused_and_nothing_is_counted_twice():
    with profiler.profile() as seen, torch.debug.explain() as explained:
        (DATA.exp() * 2 + 1).sum().item()
    found = seen.key_averages()
    assert [(each.key, each.count) for each in found] == [
        ("aten::exp", 1), ("aten::mul", 1), ("aten::add", 1), ("aten::sum", 1),
    ]  # fmt: skip
    kernels = [t for segment in explained.segments for t in segment.kernel_milliseconds]
    assert seen.self_cpu_time_total == pytest.approx(1e3 * sum(kernels))
    assert all(each.self_cpu_time_total > 0 for each in found)


def test_segments_are_cut_as_without_a_profile():
    def work():
        with profiler.record_function("a"):
            y = DATA * 3
        with profiler.record_function("b"):
            return (y - 1).tolist()

    with torch.debug.counts() as plain:
        wanted = work()
    with torch.debug.counts() as profiled, profiler.profile():
        assert work() == wanted
    assert (profiled.segments_flushed, profiled.records) == (plain.segments_flushed, plain.records)
    assert not run.TIMED[0]


def test_profile_and_explain_may_lie_in_each_other():
    with torch.debug.explain():
        with profiler.profile():
            pass
        assert run.TIMED[0]
    assert not run.TIMED[0]


def test_table_is_sorted_and_cut_and_grouped():
    with profiler.profile(record_shapes=True, with_stack=True) as seen:
        (DATA @ DATA).tolist()
        (DATA[:4] @ DATA).tolist()
    grouped = seen.key_averages(group_by_input_shape=True)
    shapes = [each.input_shapes for each in grouped if each.key == "aten::matmul"]
    assert shapes == [[[8, 8], [8, 8]], [[4, 8], [8, 8]]]
    together = seen.key_averages()
    times = [each.cpu_time_total for each in together]
    text = together.table(sort_by="cpu_time_total", row_limit=1, header="found")
    lines = text.splitlines()
    assert lines[1] == "found"
    assert lines[3].split() == (
        "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    )
    greatest = max(together, key=lambda each: each.cpu_time_total)
    assert lines[5].split()[0] == greatest.key
    assert greatest.cpu_time_total == max(times)
    assert re.fullmatch(r"Self CPU time total: [\d.]+(us|ms|s)", lines[-1])
    assert len(lines) == 8
    assert all(__file__ in line for e in seen.function_events for line in e.stack)


def test_unknown_columns_and_unfinished_profiles_are_refused():
    with profiler.profile() as seen:
        with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
            seen.key_averages()
        (DATA + 1).tolist()
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'zz'"):
        seen.key_averages().table(sort_by="zz")
    with pytest.raises(RuntimeError, match="not reentrant"):
        seen.__enter__()


def test_what_is_not_measured_is_said():
    with pytest.warns(UserWarning, match="profile_memory does nothing"):
        profiler.profile(profile_memory=True)
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profiler.profile(use_cuda=True)


def test_trace_shows_blocks_and_the_kernels_that_ran(tmp_path):
    with profiler.profile() as seen, profiler.record_function("block"):
        (DATA.exp() + 1).tolist()
    seen.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [each["name"] for each in trace if each["cat"] == "user_annotation"] == ["block"]
    assert [each["args"]["operators"] for each in trace if each["cat"] == "kernel"] == [
        ["aten::exp", "aten::add"]
    ]
    block, kernel = trace
    assert block["ts"] <= kernel["ts"]
    assert kernel["ts"] + kernel["dur"] <= block["ts"] + block["dur"]


def test_record_function_is_a_decorator_and_free_without_a_profile():
    @profiler.record_function("named")
    def double(x):
        return x * 2

    assert double(3) == 6
    with profiler.profile() as seen:
        double(DATA)
        double(DATA)
    assert [(e.key, e.count) for e in seen.key_averages() if e.is_user_annotation] == [("named", 2)]
