"""Bytecode where Python keeps none: under PYTHONDONTWRITEBYTECODE, or where the package's folder
cannot be written, a process would spend up to 0.2 s compiling sources it has compiled before.

Keeps     a module's code is used only if path, time and size of its source, and the interpreter,
          are what they were when it was written; a damaged or foreign file is no file; the file
          appears whole. Where Python keeps its own bytecode nothing is done.
Touches   sys.meta_path, one file in the cache folder.
Not here  kernels (devices/cpu/jit/object_cache.py)."""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from binascii import crc32
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any, Final

from flambeau.base import cache_folder

_MAGIC: Final = b"flambeau code 1\n"
_SUFFIX: Final = ".code"
MOST_FILES: Final = 16  # of other places and interpreters, 3 MB each; the oldest go first

# Time and size of a source, and its code, marshalled.
Entry = tuple[float, int, bytes]


class Pack:
    """The file of one package folder and interpreter."""

    def __init__(self, folder: str, package: str) -> None:
        name = f"{package}|{sys.version}|{sys.flags.optimize}"
        self.folder = folder
        self.path = f"{folder}/{crc32(name.encode()):08x}{len(name):x}{_SUFFIX}"
        self.name = name
        self.new: dict[str, Entry] = {}
        self.entries = self._read()

    def _read(self) -> dict[str, Entry]:
        try:
            if cache_folder.fault(self.folder, os.stat(self.folder)) is not None:
                return {}
            with open(self.path, "rb", buffering=0) as file:
                content = file.read()
        except OSError:
            return {}
        start = len(_MAGIC) + 4
        head, payload = content[:start], memoryview(content)[start:]
        if head != _MAGIC + crc32(payload).to_bytes(4, "little"):
            return {}
        name, entries = marshal.loads(payload)
        return entries if name == self.name else {}

    def code(self, path: str, time: float, size: int) -> CodeType | None:
        """Code of a source as it is now, if kept."""
        entry = self.entries.get(path)
        if entry is None or entry[:2] != (time, size):
            return None
        code: CodeType = marshal.loads(entry[2])
        return code

    def add(self, path: str, time: float, size: int, code: CodeType) -> None:
        """Keep a source's code from the end of the process on."""
        if not self.new:
            atexit.register(self.write)
        self.new[path] = (time, size, marshal.dumps(code))

    def write(self) -> None:
        """Put what is new into the file, next to what other processes have put there."""
        if cache_folder.made(self.folder) is not None:
            return
        payload = marshal.dumps((self.name, self._read() | self.new))
        aside = f"{self.path}.{os.getpid()}"
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + crc32(payload).to_bytes(4, "little") + payload)
            os.replace(aside, self.path)
            self.new = {}
            self._drop_oldest()
        except OSError:
            _remove(aside)

    def _drop_oldest(self) -> None:
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if _SUFFIX in entry.name:
                    found.append((entry.stat().st_mtime, entry.path))
        for _, path in sorted(found)[:-MOST_FILES]:
            _remove(path)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


class _Loader(SourceFileLoader):
    """Python's own loader, with bytecode from the pack."""

    pack: Pack

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            status = self.path_stats(self.path)
        except OSError:
            return super().get_code(fullname)
        time, size = status["mtime"], status["size"]
        code = self.pack.code(self.path, time, size)
        if code is None:
            code = super().get_code(fullname)
            if code is not None:
                self.pack.add(self.path, time, size, code)
        return code


class _Finder:
    """Finds flambeau's modules where Python does, and gives them the pack's loader."""

    def __init__(self, package: str, pack: Pack) -> None:
        self._prefix = f"{package}."
        self._pack = pack

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As importlib's finders."""
        if not fullname.startswith(self._prefix):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = loader = _Loader(fullname, spec.loader.path)
            loader.pack = self._pack
        return spec


def install(spec: ModuleSpec | None) -> None:
    """Keep the bytecode of a package where Python may not, or has kept none of its first module."""
    if spec is None or spec.origin is None or not spec.has_location:
        return
    is_kept = spec.cached is not None and os.path.exists(spec.cached)
    if is_kept and not sys.dont_write_bytecode:
        return
    package = os.path.dirname(spec.origin)
    finder: Any = _Finder(spec.name, Pack(cache_folder.location(), package))
    sys.meta_path.insert(0, finder)
