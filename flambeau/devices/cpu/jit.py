"""Turns LLVM text into addresses of native code.

Keeps     everything missing in a call is linked in one go; code stays where it is until
          `release`, so that no thread can be in code that is gone; a process whose kernels are
          all on disk never makes a target machine nor parses any text.
Touches   llvmlite, imported at the first kernel; object_cache.
Not here  writing the text (codegen), running it (runner.py)."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features
from flambeau.devices.cpu.object_cache import ObjectCache, default_folder

FORMAT_VERSION: Final = 1
TRIPLE: Final = "x86_64-unknown-linux-gnu"


class Statistics:
    """What this process has compiled and loaded so far."""

    __slots__ = ("compile_ns", "compiled", "link_ns", "loaded")

    def __init__(self) -> None:
        self.compiled = 0
        self.loaded = 0
        self.compile_ns = 0
        self.link_ns = 0


STATS: Final = Statistics()

_lock = threading.RLock()
_addresses: dict[str, int] = {}
_trackers: dict[str, _Tracker] = {}
_caches: dict[Path, ObjectCache] = {}
_machines: dict[int, Any] = {}
_linker: Any = None
_n_links = 0


class _Tracker:
    """One link's code; unloaded when the last of its names is released."""

    __slots__ = ("handle", "names")

    def __init__(self, handle: Any, names: set[str]) -> None:
        self.handle = handle
        self.names = names


def compile_functions(texts: Mapping[str, str]) -> dict[str, int]:
    """Addresses of the named functions, each defined by a module text of its own."""
    try:
        return {name: _addresses[name] for name in texts}
    except KeyError:
        pass
    with _lock:
        missing = {name: text for name, text in texts.items() if name not in _addresses}
        if missing:
            _link({name: _object_of(name, text) for name, text in missing.items()})
        return {name: _addresses[name] for name in texts}


def release(names: Iterable[str]) -> None:
    """Forget functions; their code goes with the last one of its link. No run may be in flight."""
    with _lock:
        for name in names:
            if _addresses.pop(name, None) is None:
                continue
            tracker = _trackers.pop(name)
            tracker.names.discard(name)
            if not tracker.names:
                tracker.handle.close()


def _object_of(name: str, text: str) -> bytes:
    store = _cache()
    key = _key(text)
    found = store.load(key)
    if found is not None:
        STATS.loaded += 1
        return found
    start = time.perf_counter_ns()
    code = _emit(name, text)
    STATS.compile_ns += time.perf_counter_ns() - start
    STATS.compiled += 1
    store.store(key, code)
    return code


def _cache() -> ObjectCache:
    folder = default_folder()
    store = _caches.get(folder)
    if store is None:
        store = _caches[folder] = ObjectCache(folder)
    return store


def _key(text: str) -> str:
    parts = (text, features.cpu_identity(), _llvm_identity(), CONFIG.codegen_level, FORMAT_VERSION)
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


@cache
def _llvm_identity() -> str:
    """Version of llvmlite and of the LLVM in it, without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise ImportError(
            "flambeau needs llvmlite to compile its kernels and cannot find it. "
            "Install it with: pip install llvmlite"
        )
    package = Path(spec.origin).parent
    library = package / "binding" / "libllvmlite.so"
    size = library.stat().st_size if library.exists() else 0
    return f"{(package / '_version.py').read_text()}|{size}"


def _binding() -> Any:
    return import_module("llvmlite.binding")


@cache
def _initialise() -> None:
    binding = _binding()
    # Process-wide and read when the first target machine is made: loop strength reduction is a
    # third of code generation and gains nothing on loops written with explicit vectors.
    binding.set_option("", "-disable-lsr")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _machine() -> Any:
    level = CONFIG.codegen_level
    machine = _machines.get(level)
    if machine is None:
        _initialise()
        binding = _binding()
        machine = _machines[level] = binding.Target.from_triple(TRIPLE).create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=level,
            reloc="pic",
            codemodel="small",
        )
    return machine


def _emit(name: str, text: str) -> bytes:
    machine = _machine()
    binding = _binding()
    header = f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    try:
        module = binding.parse_assembly(header + text)
        module.verify()
    except RuntimeError as error:
        raise RuntimeError(f"the text of kernel {name} is not LLVM: {error}\n{text}") from None
    with module:
        return bytes(machine.emit_object(module))


def _link(objects: dict[str, bytes]) -> None:
    global _linker, _n_links
    start = time.perf_counter_ns()
    binding = _binding()
    if _linker is None:
        _initialise()
        _linker = binding.create_lljit_compiler(use_jit_link=True)
    builder = binding.JITLibraryBuilder().add_current_process()
    for name, code in objects.items():
        builder.add_object_img(code).export_symbol(name)
    _n_links += 1
    handle = builder.link(_linker, f"kernels{_n_links}")
    tracker = _Tracker(handle, set(objects))
    for name in objects:
        _addresses[name] = handle[name]
        _trackers[name] = tracker
    STATS.link_ns += time.perf_counter_ns() - start


# A child must not inherit a lock that another thread held in the parent.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
)
