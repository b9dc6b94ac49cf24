"""The folder that compiled things are kept in between processes.

Keeps     nothing is read from, or written to, a folder that others may write.
Touches   CONFIG.cache_dir, else $XDG_CACHE_HOME/flambeau, else ~/.cache/flambeau.
Not here  kernels (devices/cpu/jit/object_cache.py), bytecode (bytecode.py)."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from flambeau.base.config import CONFIG


def location() -> str:
    """Where it is: the switch, then the XDG cache home, then ~/.cache."""
    if CONFIG.cache_dir:
        return CONFIG.cache_dir
    home = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path is to be ignored.
    base = home if os.path.isabs(home) else f"{os.path.expanduser('~')}/.cache"
    return f"{base}/flambeau"


def made(folder: str) -> str | None:
    """Make the folder if need be: None, or why it cannot be used."""
    try:
        os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        return fault(folder, os.stat(folder))
    except OSError as error:
        return f"cannot make {folder} ({error.strerror})"


def fault(folder: str, status: os.stat_result) -> str | None:
    """What is wrong with a folder: it must be ours alone."""
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder"
    if status.st_uid != os.getuid():
        return f"{folder} belongs to user {status.st_uid}, not to us"
    if status.st_mode & 0o022:
        return f"{folder} can be written by other users (chmod 700 it)"
    return None
