"""Compiled objects, and the plans that call them, kept on disk between processes.

Keeps     a damaged, foreign or unreadable file is a miss, never an error; files appear whole
          (written aside, then renamed); nothing is read from a folder that others may write;
          the folder stays below a bound in bytes, least recently used first out.
Touches   base.cache_folder.
Not here  what a key is made of (the package's own module)."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final

from flambeau.base import cache_folder
from flambeau.base.errors import present

MAXIMUM_BYTES: Final = 512 << 20
_MAGIC: Final = b"flambeau object 1\n"
_HEADER_BYTES: Final = len(_MAGIC) + 8 + 32  # magic, payload size, payload sha256
_SUFFIX: Final = ".kernel"
# A file is one of the cache's own if this is in its name, and whole if it is the end.
_SUFFIXES: Final = (_SUFFIX, ".plan")
# What has been written since somebody looked at the whole folder: a file of a byte per unit, so
# that many processes that write little look as seldom as one that writes much.
_TALLY: Final = "written"
_UNITS: Final = 4096
# A file is marked as used at most this often, so that warm starts do not write.
_TOUCH_SECONDS: Final = 24 * 3600


class ObjectCache:
    """One folder of objects; without a usable folder it finds nothing and stores nothing."""

    def __init__(self, folder: Path, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self.folder: Path | None = _private_folder(folder)
        self._maximum_bytes = maximum_bytes

    def load(self, key: str, suffix: str = _SUFFIX) -> bytes | None:
        """Payload stored under `key` with this suffix, one of _SUFFIXES, or None."""
        if self.folder is None:
            return None
        path = f"{self.folder}/{key}{suffix}"
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                content = file.read()
        except OSError:
            return None
        payload = content[_HEADER_BYTES:]
        if content[:_HEADER_BYTES] != _header(payload):
            return None
        if time.time() - status.st_mtime > _TOUCH_SECONDS:
            with suppress(OSError):
                os.utime(path)
        return payload

    def store(self, key: str, payload: bytes, suffix: str = _SUFFIX) -> None:
        """Keep `payload` under `key`; what cannot be written is let go."""
        if self.folder is None:
            return
        path = f"{self.folder}/{key}{suffix}"
        # Process, thread and time: two writers never share a name, not even after a fork.
        aside = f"{path}.{os.getpid()}.{threading.get_ident()}.{time.monotonic_ns()}"
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_header(payload) + payload)
            os.replace(aside, path)
        except OSError as error:
            _remove(aside)
            _warn_once(f"cannot write to {self.folder} ({error.strerror})")
            return
        if self._is_due(len(payload) + _HEADER_BYTES):
            self._drop_oldest()

    def _is_due(self, n_bytes: int) -> bool:
        """Count bytes as written; whether they and those before are an eighth of the bound."""
        unit = max(self._maximum_bytes // 8 // _UNITS, 1)
        marks = bytes(-(-n_bytes // unit))
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(f"{self.folder}/{_TALLY}", flags, 0o600)
            try:
                os.write(descriptor, marks)
                n_marks = os.fstat(descriptor).st_size
                # A new tally says nothing of what lies there already.
                is_due = n_marks == len(marks) or n_marks * unit >= self._maximum_bytes // 8
                if is_due:
                    os.truncate(descriptor, 1)
            finally:
                os.close(descriptor)
        except OSError:
            return True
        return is_due

    def _drop_oldest(self) -> None:
        """Bring the folder below its bound, and remove what crashed writers left behind."""
        found: list[tuple[float, int, str]] = []
        now = time.time()
        try:
            with os.scandir(present(self.folder, "the folder of kernels")) as entries:
                for entry in entries:
                    if not any(suffix in entry.name for suffix in _SUFFIXES):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_SUFFIXES):
                        found.append((status.st_mtime, status.st_size, entry.path))
                    elif now - status.st_mtime > 3600:
                        _remove(entry.path)
        except OSError:
            return
        total = sum(size for _, size, _ in found)
        if total <= self._maximum_bytes:
            return
        for _, size, path in sorted(found):
            _remove(path)
            total -= size
            # An eighth below, so that the next stores need not look again.
            if total <= self._maximum_bytes - self._maximum_bytes // 8:
                break


def _header(payload: bytes) -> bytes:
    digest = hashlib.sha256(payload).digest()
    return _MAGIC + len(payload).to_bytes(8, "little") + digest


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def default_folder() -> Path:
    """Where objects go."""
    return Path(cache_folder.location())


def _private_folder(folder: Path) -> Path | None:
    """The folder, made if need be; None, said once, if it is not ours alone."""
    reason = cache_folder.made(str(folder))
    if reason is not None:
        _warn_once(reason)
        return None
    return folder


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"flambeau keeps no compiled kernels between runs: {reason}. "
            "Set FLAMBEAU_CACHE_DIR to a folder that only you can write.",
            stacklevel=2,
        )
