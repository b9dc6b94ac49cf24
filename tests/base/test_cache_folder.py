"""Where compiled things are kept, and which folders are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from flambeau.base import cache_folder
from flambeau.base.config import CONFIG


def test_location(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The switch, then an absolute XDG_CACHE_HOME, then ~/.cache."""
    monkeypatch.setattr(CONFIG, "cache_dir", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder.location() == f"{tmp_path}/.cache/flambeau"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder.location() == f"{tmp_path}/xdg/flambeau"
    monkeypatch.setattr(CONFIG, "cache_dir", "/somewhere")
    assert cache_folder.location() == "/somewhere"


def test_made_for_us_alone(tmp_path: Path) -> None:
    """With its parents; a second time it is there."""
    folder = tmp_path / "a" / "b"
    assert cache_folder.made(str(folder)) is None
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cache_folder.made(str(folder)) is None


def test_refused(tmp_path: Path) -> None:
    """What is no folder, cannot be made, or may be written by others."""
    (tmp_path / "file").write_text("")
    assert "is not a folder" in str(cache_folder.made(str(tmp_path / "file")))
    assert "cannot make" in str(cache_folder.made(str(tmp_path / "file" / "inner")))
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "can be written by other users" in str(cache_folder.made(str(tmp_path / "open")))
