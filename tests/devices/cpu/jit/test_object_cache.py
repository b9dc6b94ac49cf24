"""The object cache: whatever is wrong with a file, it is a miss and is written again."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from pathlib import Path

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu.jit import object_cache
from flambeau.devices.cpu.jit.object_cache import ObjectCache

PAYLOAD = bytes(range(256)) * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def file_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.kernel"


def test_what_is_stored_is_found_by_another_process(folder: Path) -> None:
    ObjectCache(folder).store("key", PAYLOAD)
    assert ObjectCache(folder).load("key") == PAYLOAD
    assert ObjectCache(folder).load("other") is None
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("cut", [0, 1, 30, 58, 60, len(PAYLOAD)])
def test_a_truncated_file_is_a_miss_and_is_replaced(folder: Path, cut: int) -> None:
    cache = ObjectCache(folder)
    cache.store("key", PAYLOAD)
    path = file_of(folder, "key")
    path.write_bytes(path.read_bytes()[:cut])
    assert cache.load("key") is None
    cache.store("key", PAYLOAD)
    assert cache.load("key") == PAYLOAD


@pytest.mark.parametrize("place", [0, 20, 40, 100, -1])
def test_a_flipped_bit_is_a_miss(folder: Path, place: int) -> None:
    cache = ObjectCache(folder)
    cache.store("key", PAYLOAD)
    path = file_of(folder, "key")
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    assert cache.load("key") is None


def test_an_unreadable_file_is_a_miss(folder: Path) -> None:
    cache = ObjectCache(folder)
    file_of(folder, "key").mkdir()
    assert cache.load("key") is None


def test_a_folder_that_others_can_write_is_not_used_and_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "_warned", False)
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="can be written by other users"):
        cache = ObjectCache(folder)
    cache.store("key", PAYLOAD)
    assert cache.load("key") is None
    assert list(folder.iterdir()) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectCache(folder)


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "_warned", False)
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="keeps no compiled kernels"):
        cache = ObjectCache(tmp_path / "file" / "cache")
    cache.store("key", PAYLOAD)
    assert cache.load("key") is None


def test_the_folder_stays_bounded_and_the_oldest_go_first(folder: Path) -> None:
    cache = ObjectCache(folder, maximum_bytes=20 * len(PAYLOAD))
    for number in range(60):
        cache.store(f"key{number}", PAYLOAD)
        os.utime(file_of(folder, f"key{number}"), (number, number))
    total = sum(path.stat().st_size for path in folder.glob("*.kernel"))
    assert total <= 24 * len(PAYLOAD)  # an eighth may be written before the next look
    assert cache.load("key0") is None
    assert cache.load("key59") == PAYLOAD


def test_processes_that_write_little_keep_the_bound_and_look_seldom(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    drop_oldest = ObjectCache._drop_oldest

    def counted(cache: ObjectCache) -> None:
        looks.append(cache)
        drop_oldest(cache)

    monkeypatch.setattr(ObjectCache, "_drop_oldest", counted)
    for number in range(160):
        ObjectCache(folder, maximum_bytes=80 * len(PAYLOAD)).store(f"key{number}", PAYLOAD)
    total = sum(path.stat().st_size for path in folder.glob("*.kernel"))
    assert total <= 92 * len(PAYLOAD)
    assert 8 <= len(looks) <= 24


def test_use_is_noted(folder: Path) -> None:
    cache = ObjectCache(folder)
    cache.store("key", PAYLOAD)
    os.utime(file_of(folder, "key"), (1, 1))
    cache.load("key")
    assert file_of(folder, "key").stat().st_mtime > 1000


def _store_and_load(folder: Path, number: int) -> bool:
    cache = ObjectCache(folder)
    for _ in range(100):
        cache.store("shared", PAYLOAD)
        found = cache.load("shared")
        if found != PAYLOAD:
            return False
    return number >= 0


def test_processes_write_the_same_key_at_once(folder: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.starmap(_store_and_load, [(folder, k) for k in range(4)]))
    assert [path.name for path in folder.glob("*.kernel*")] == ["shared.kernel"]


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONFIG, "cache_dir", "/somewhere")
    assert object_cache.default_folder() == Path("/somewhere")
