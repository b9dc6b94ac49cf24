"""torch.profiler: schedules and what a profile hands over, as torch 2.13 does it."""

import gzip
import json

import pytest

import flambeau as torch
from flambeau.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    tensorboard_trace_handler,
)

N, W, R, S = ProfilerAction  # NONE, WARMUP, RECORD, RECORD_AND_SAVE


def test_actions_are_torchs():
    action = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [action(step) for step in range(12)] == [N, N, W, R, S, N, W, R, S, N, N, N]
    action = schedule(wait=1, warmup=1, active=1)
    assert [action(step) for step in range(6)] == [N, W, S, N, W, S]
    with pytest.raises(AssertionError, match=r"schedule arguments\. Got wait=-1"):
        schedule(wait=-1, warmup=0, active=1)


@pytest.mark.parametrize(("keeps_all", "wanted"), [(False, 4), (True, 8)])
def test_each_cycle_is_handed_over(keeps_all, wanted):
    seen = []

    def ready(finished):
        seen.append((finished.step_num, len(finished.events())))

    cycles = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=cycles, on_trace_ready=ready, acc_events=keeps_all) as p:
        for _ in range(8):
            (torch.ones(3) + 1).tolist()
            p.step()
    # ones, add and the step itself, in two steps of each cycle
    assert [step for step, _ in seen] == [4, 8]
    found = {each.key: each.count for each in p.key_averages()}
    assert (found["ProfilerStep*"], found["aten::add"]) == (wanted // 2, wanted // 2)
    assert p.events()[0].name == ("ProfilerStep#2" if keeps_all else "ProfilerStep#6")


def test_without_a_schedule_the_whole_block_is_one_cycle():
    seen = []
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=seen.append) as p:
        with torch.profiler.record_function("model"):
            y = torch.ones(3) * 2
        del y
        p.step()
    assert seen == [p]
    assert "model" in p.key_averages().table(sort_by="cuda_time_total", row_limit=10)


def test_traces_go_into_a_folder(tmp_path):
    ready = tensorboard_trace_handler(tmp_path / "log", "worker", use_gzip=True)
    with profile(on_trace_ready=ready):
        torch.ones(3).exp().tolist()
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("worker.")
    assert path.name.endswith(".pt.trace.json.gz")
    assert json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_profiles_without_events_are_refused():
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[3])
    with pytest.raises(AssertionError, match="must be initialized before getting key averages"):
        profile().key_averages()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
