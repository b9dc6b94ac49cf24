"""What the machine can do, and what is said where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features
from tests.devices.cpu.native_support import in_new_process


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    cached = (
        features.cpu_fields, features.has_avx512, features.usable_cores,
        features.second_cache_bytes,
    )  # fmt: skip
    for function in cached:
        function.cache_clear()


def test_this_machine() -> None:
    assert "avx2" in features.cpu_fields()["flags"].split()
    assert features.vector_bits() in (256, 512)
    assert features.usable_cores() >= 1
    assert 5e8 < features.cycles_per_second() < 1e10


@pytest.mark.parametrize(
    ("written", "n_bytes"),
    [
        ("512K\n", 512 << 10),
        ("2048K", 2 << 20),
        ("", 256 << 10),
        ("x", 256 << 10),
        (None, 256 << 10),
    ],
)
def test_size_of_the_second_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None, n_bytes: int
) -> None:
    place = tmp_path / "size"
    if written is not None:
        place.write_text(written)
    monkeypatch.setattr(features, "_SECOND_CACHE", place)
    assert features.second_cache_bytes() == n_bytes


def test_width_follows_the_cpu_and_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONFIG, "vector_bits", None)
    monkeypatch.setattr(features, "has_avx512", lambda: False)
    assert features.vector_bits() == 256
    monkeypatch.setattr(features, "has_avx512", lambda: True)
    assert features.vector_bits() == 512
    monkeypatch.setattr(CONFIG, "vector_bits", 256)
    assert features.vector_bits() == 256


def test_quota_of_either_cgroup_version(tmp_path: Path) -> None:
    assert features._quota_of(tmp_path) is None
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert features._quota_of(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert features._quota_of(tmp_path) == 1.5
    older = tmp_path / "older"
    older.mkdir()
    (older / "cpu.cfs_quota_us").write_text("-1\n")
    (older / "cpu.cfs_period_us").write_text("100000\n")
    assert features._quota_of(older) is None
    (older / "cpu.cfs_quota_us").write_text("200000\n")
    assert features._quota_of(older) == 2.0


@pytest.mark.parametrize(("quota", "expected"), [(None, 8), (1.5, 2), (0.1, 1), (20.0, 8)])
def test_cores_are_the_smaller_of_affinity_and_quota(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    features.usable_cores.cache_clear()
    monkeypatch.setattr(features.os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(features, "_cgroup_quota", lambda: quota)
    assert features.usable_cores() == expected


@pytest.mark.parametrize(("platform", "machine"), [("darwin", "x86_64"), ("linux", "aarch64")])
def test_other_systems_are_refused_clearly(
    monkeypatch: pytest.MonkeyPatch, platform: str, machine: str
) -> None:
    features.cpu_fields.cache_clear()
    monkeypatch.setattr(features.sys, "platform", platform)
    uname = SimpleNamespace(machine=machine)
    monkeypatch.setattr(features.os, "uname", lambda: uname)
    with pytest.raises(RuntimeError, match="Linux on x86-64 only"):
        features.cpu_fields()


def test_an_old_cpu_is_refused_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    features.cpu_fields.cache_clear()
    monkeypatch.setattr(features, "_NEEDED", ("avx2", "avx1024"))
    with pytest.raises(RuntimeError, match="lacks avx1024"):
        features.cpu_fields()


def test_reading_features_imports_nothing_heavy() -> None:
    in_new_process(
        "import sys\n"
        "from flambeau.devices.cpu import features\n"
        "features.cpu_identity(); features.vector_bits(); features.usable_cores()\n"
        "assert not {'llvmlite', 'numpy'} & set(sys.modules)\n"
    )
