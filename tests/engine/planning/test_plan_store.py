"""Plans on disk: what comes back is what planning anew gives, and whatever is wrong is a miss."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau import debug
from flambeau.devices.cpu import jit
from flambeau.engine import plan_store, run
from flambeau.engine.plan import Plan, SegmentFacts
from flambeau.engine.planning import plan as plans
from flambeau.engine.planning import template
from flambeau.engine.planning.symbolic.relative import live_records
from flambeau.ops.define import REGISTRY, Elementwise, EveryDim
from tests.engine.random_programs import Program, bits

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of plans of its own; the kernels stay where they are, loaded."""
    monkeypatch.setattr(plan_store, "FEW_RECORDS", 0)
    torch.ones(1).add(1).item()
    folder = tmp_path / "plans"
    with debug.cache_dir(str(folder)), debug.keep_plans(True):
        run.forget_plans()
        plan_store.forget()
        yield folder
    run.forget_plans()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every plan that comes from disk is compared with planning anew; words compared."""
    words: list[int] = []
    original = plan_store.plan_for

    def plan_for(facts: SegmentFacts, came_back: bool) -> tuple[Plan, bool]:
        loaded = plan_store.STATS.loaded
        plan, is_new = original(facts, came_back)
        if plan_store.STATS.loaded > loaded:
            fresh = template._whole(facts, live_records(facts))
            if not plan.is_apart or not isinstance(fresh, Plan):
                fresh = plans.plan_segment(facts)
            assert plan.program == fresh.program
            assert plan.explained() == fresh.explained()
            for name in ("is_apart", "arena_bytes", "stored", "stored_numbers", "n_touched",
                         "n_kernels", "number_format", "statements"):  # fmt: skip
                assert getattr(plan, name) == getattr(fresh, name)
            words.append(len(plan.program))
        return plan, is_new

    monkeypatch.setattr(plan_store, "plan_for", plan_for)
    return words


def train() -> list[list[float]]:
    """Products, a convolution, random numbers, indices, in-place writes and an optimizer."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, 8, 8)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(image), torch.tensor([1, 3]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scores, order = torch.sort(model(image), dim=-1)
    scores[0].mul_(2)
    return [losses, scores.flatten().tolist(), order.flatten().tolist()]


def clear_memory() -> None:
    """Forget the plans of this process, not those on disk."""
    run.forget_plans()
    plan_store.forget()


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_come_back_word_by_word(compared: list[int], seed: int) -> None:
    seeds = range(10 * seed, 10 * seed + 5)
    first = [bits(Program(each, 14).run()) for each in seeds]
    clear_memory()
    assert [bits(Program(each, 14).run()) for each in seeds] == first
    assert compared


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("vector_bits", [256, None])
def test_training_comes_back_word_by_word(compared: list[int], vector_bits: int | None) -> None:
    with debug.vector_bits(vector_bits):
        first = train()
        clear_memory()
        with debug.counts() as seen:
            assert train() == first
    assert seen.kernels_compiled == 0
    assert len(compared) == 3


@pytest.mark.usefixtures("store")
def test_another_width_and_number_of_threads_have_plans_of_their_own() -> None:
    def stored(action: Any) -> int:
        before = plan_store.STATS.stored
        assert action() == 12.0
        return plan_store.STATS.stored - before

    def action() -> float:
        return float((torch.ones(4) * 3).sum().item())

    assert stored(action) == 1
    clear_memory()
    assert stored(action) == 0
    for switch in (debug.vector_bits(256), debug.threads(3), debug.codegen_level(0)):
        with switch:
            assert stored(action) == 1
            clear_memory()
            assert stored(action) == 0


@pytest.mark.usefixtures("store")
def test_switched_off_nothing_is_read_or_written(store: Path) -> None:
    with debug.keep_plans(False):
        assert (torch.ones(4) * 5).sum().item() == 20.0
    assert list(store.glob("*.plan")) == []
    assert (torch.ones(4) * 5).sum().item() == 20.0
    assert len(list(store.glob("*.plan"))) == 0  # this process knows the plan already
    clear_memory()
    assert (torch.ones(4) * 5).sum().item() == 20.0
    assert len(list(store.glob("*.plan"))) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"i", b"\xfb" * 40, marshal.dumps(3, 2), marshal.dumps((1, 2, 3), 2),
     marshal.dumps((["a"], [], b"", (), 0, 0, "", 0, False, b""), 2),
     marshal.dumps(([], [], b"\1" * 9, (), 0, 0, "", 0, False, b""), 2),
     marshal.dumps(([], [], bytes(8), (), 0, 0, "", 0, False, b""), 2),
     marshal.dumps(([], [], (1).to_bytes(8, "little") * 9, (), 0, 0, "", 0, False, b""), 2),
     marshal.dumps(([], [], bytes(32), (), 0, 0, "%", 0, False, b""), 2),
     marshal.dumps((["nest"], ["no such kernel"], bytes(32), (), 0, 0, "", 0, False, b""), 2)],
)  # fmt: skip
def test_a_file_that_is_no_plan_is_a_miss_and_is_replaced(store: Path, content: bytes) -> None:
    def action() -> float:
        return float((torch.ones(3) * 7).sum().item())

    assert action() == 21.0
    (path,) = store.glob("*.plan")
    whole = path.read_bytes()
    jit.object_store().store(path.stem, content, ".plan")
    assert path.read_bytes() != whole
    clear_memory()
    loaded = plan_store.STATS.loaded
    assert action() == 21.0
    assert plan_store.STATS.loaded == loaded
    assert path.read_bytes() == whole


def test_a_truncated_file_is_a_miss(store: Path) -> None:
    assert (torch.ones(3) * 9).sum().item() == 27.0
    (path,) = store.glob("*.plan")
    path.write_bytes(path.read_bytes()[:-1])
    clear_memory()
    loaded = plan_store.STATS.loaded
    assert (torch.ones(3) * 9).sum().item() == 27.0
    assert plan_store.STATS.loaded == loaded


PROGRAM = """
import sys
import flambeau as torch
x = torch.arange(6.0).reshape(2, 3)
w = torch.ones(3, 4, requires_grad=True)
(x @ w).softmax(-1).sum().backward()
said = w.grad.abs().sum().item() < 1e-5
is_planned = any(name.startswith("flambeau.codegen") for name in sys.modules)
from flambeau.engine.plan_store import STATS
print(said, STATS.loaded, STATS.stored, is_planned, "llvmlite" in sys.modules)
"""


def test_the_next_process_does_not_plan(tmp_path: Path) -> None:
    def script() -> str:
        environment = {
            **os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache"), "FLAMBEAU_KEEP_PLANS": "1",
            "FLAMBEAU_NATIVE_RECORDER": "0",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert script() == "True 0 1 True True"
    assert script() == "True 1 0 False False"
    for kernel in (tmp_path / "cache").glob("*.kernel"):
        kernel.unlink()
    assert script() == "True 0 1 True True"


@pytest.mark.usefixtures("store")
def test_forms_whose_plan_came_from_disk_have_been_seen() -> None:
    """Sizes never seen are bound as soon as where the first plans were made here."""
    x = torch.arange(40, dtype=torch.float64)

    def mean(i: int) -> Any:
        return (x[:i] * 2).mean().item()

    assert mean(20) == 19.0
    clear_memory()
    assert mean(20) == 19.0
    made = template.STATS.made
    assert mean(21) == 20.0
    assert template.STATS.made == made + 1


@pytest.mark.usefixtures("store")
def test_bound_plans_are_written_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "MAX_BOUND", plan_store.STATS.stored_bound + 3)
    x = torch.arange(40, dtype=torch.float64)
    assert x[1].item() == 1.0
    before, bound = plan_store.STATS.stored, template.STATS.bound
    for i in range(2, 20):
        assert (x[:i] * 2).mean().item() == i - 1
    assert template.STATS.bound - bound >= 14
    assert 4 <= plan_store.STATS.stored - before <= 6
    clear_memory()
    loaded = plan_store.STATS.loaded
    for i in range(2, 5):
        assert (x[:i] * 2).mean().item() == i - 1
    assert plan_store.STATS.loaded == loaded + 3


@pytest.mark.usefixtures("store")
def test_fewer_bound_plans_of_short_segments_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "FEW_RECORDS", 8)
    monkeypatch.setattr(plan_store, "MAX_SHORT_BOUND", plan_store.STATS.stored_bound + 2)
    x = torch.arange(40, dtype=torch.float64)
    assert x[1].item() == 1.0
    bound, stored = template.STATS.bound, plan_store.STATS.stored_bound
    for i in range(2, 20):
        assert (x[:i] * 2).mean().item() == i - 1
    assert template.STATS.bound - bound >= 14
    assert plan_store.STATS.stored_bound == stored + 2


@pytest.mark.usefixtures("store")
def test_short_segments_are_not_looked_for_once_planning_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_store, "FEW_RECORDS", 8)
    loaded = plan_store.STATS.loaded
    for _ in range(2):
        assert (torch.ones(4) * 11).sum().item() == 44.0
        clear_memory()
    assert plan_store.STATS.loaded == loaded
    monkeypatch.setattr(plan_store, "_PLANNING", "not imported")
    assert (torch.ones(4) * 11).sum().item() == 44.0
    assert plan_store.STATS.loaded == loaded + 1


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0.0, -0.0), ((1, 2), [1, 2]), ("1", 1), (None, False), (b"a", "a"),
     ({"a": 1}, (("a", 1),)), (int, "int"), (torch.float32, "float32"), ((1, (2,)), (1, 2)),
     (torch.float32, torch.float64), (EveryDim((0, 1)), (0, 1))],
)  # fmt: skip
def test_attributes_that_differ_have_keys_that_differ(one: Any, other: Any) -> None:
    def written(value: Any) -> bytes:
        return marshal.dumps(plan_store._plain(value), 2)

    assert written(one) != written(other)
    assert written(one) == written(one)


def test_what_cannot_be_written_down_has_no_key() -> None:
    with pytest.raises(TypeError, match="has no key"):
        plan_store._plain((1, object()))


def test_a_programs_own_operator_has_no_key() -> None:
    class Own(Elementwise):
        name = "own_for_the_plan_store"

    assert plan_store._is_own(REGISTRY["exp"])
    assert not plan_store._is_own(Own())
    assert not plan_store._is_own(type(REGISTRY["exp"])())
