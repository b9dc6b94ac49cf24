"""Turns LLVM text into addresses of native code.

Keeps     everything missing in a call is linked in one go; code stays where it is until
          `release`, so that no thread can be in code that is gone; a process whose kernels are
          all on disk never imports LLVM.
Touches   llvmlite, imported at the first kernel that is compiled; image; object_cache.
Not here  writing the text (codegen), running it (runner)."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from flambeau.base.config import CONFIG, IMPORTED_AT
from flambeau.devices.cpu import features
from flambeau.devices.cpu.image import Image, LoadedCode, image_of
from flambeau.devices.cpu.object_cache import ObjectCache, default_folder
from flambeau.devices.forks import at_fork

FORMAT_VERSION: Final = 2
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

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_lock = threading.RLock()
# Held while LLVM works, also for a caller that was interrupted and is gone.
_emitting = threading.RLock()
_addresses: dict[str, int] = {}
# Function -> the key that its object is kept under.
_keys: dict[str, str] = {}
_loads: dict[str, _Load] = {}
# The switch that names a folder -> what is kept there.
_caches: dict[str | None, ObjectCache] = {}
_machines: dict[int, Any] = {}


class _Load:
    """What was linked together; unloaded when the last of its names is released."""

    __slots__ = ("code", "names")

    def __init__(self, code: LoadedCode) -> None:
        self.code = code
        self.names = set(code.addresses)


class LateText:
    """A text that is only made where no compiled form of it is kept.

    make      makes it
    folders   flambeau's folders whose files decide what the text of a given name is
    """

    __slots__ = ("folders", "make")

    def __init__(self, make: Callable[[], str], folders: tuple[str, ...]) -> None:
        self.make = make
        self.folders = folders


Text = str | LateText


def text_of(given: Text) -> str:
    """The text itself."""
    return given.make() if isinstance(given, LateText) else given


def compile_functions(texts: Mapping[str, Text]) -> dict[str, int]:
    """Addresses of the named functions, each defined by a module text of its own."""
    try:
        return {name: _addresses[name] for name in texts}
    except KeyError:
        pass
    with _lock:
        missing = {name: text for name, text in texts.items() if name not in _addresses}
        if missing:
            _link({name: _image_of(name, text) for name, text in missing.items()})
        return {name: _addresses[name] for name in texts}


def load_functions(texts: Mapping[str, Text]) -> dict[str, int] | None:
    """The same where nothing has to be compiled for it, else None."""
    with _lock:
        images = {}
        for name, text in texts.items():
            if name not in _addresses:
                key = _key(name, text)
                image = _kept(key)
                if image is None:
                    return None
                images[name] = image
                _keys[name] = key
        STATS.loaded += len(images)
        if images:
            _link(images)
        return {name: _addresses[name] for name in texts}


def load_kept(keys: Mapping[str, str]) -> dict[str, int] | None:
    """Addresses of functions whose objects are kept under these keys; None where one is not."""
    with _lock:
        images = {}
        for name, key in keys.items():
            if name not in _addresses:
                image = _kept(key)
                if image is None:
                    return None
                images[name] = image
        if images:
            STATS.loaded += len(images)
            _keys.update({name: keys[name] for name in images})
            _link(images)
        return {name: _addresses[name] for name in keys}


def keys_of(names: Iterable[str]) -> list[str] | None:
    """Keys that the objects of these functions are kept under; None where one has none."""
    try:
        return [_keys[name] for name in names]
    except KeyError:
        return None


def release(names: Iterable[str]) -> None:
    """Forget functions; their code goes with the last one of its link. No run may be in flight."""
    with _lock:
        for name in names:
            if _addresses.pop(name, None) is None:
                continue
            _keys.pop(name, None)
            load = _loads.pop(name)
            load.names.discard(name)
            if not load.names:
                load.code.unload()


def _kept(key: str) -> Image | None:
    """The image kept on disk under a key."""
    found = object_store().load(key)
    if found is not None:
        try:
            return Image.unpack(found)
        except ValueError:
            pass
    return None


def _image_of(name: str, given: Text) -> Image:
    key = _keys[name] = _key(name, given)
    image = _kept(key)
    if image is not None:
        STATS.loaded += 1
        return image
    start = time.perf_counter_ns()
    image = image_of(_emit(name, given), name)
    STATS.compile_ns += time.perf_counter_ns() - start
    STATS.compiled += 1
    object_store().store(key, image.pack())
    return image


def object_store() -> ObjectCache:
    """Where objects are kept under the present switches."""
    chosen = CONFIG.cache_dir
    store = _caches.get(chosen)
    if store is None:
        store = _caches[chosen] = ObjectCache(default_folder())
    return store


def _key(name: str, text: Text) -> str:
    if isinstance(text, LateText):
        sources = sources_identity(text.folders)
        text = f"{name} {sources}" if sources else text.make()
    parts = (text, machine_identity(), CONFIG.codegen_level)
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def machine_identity() -> str:
    """Text that differs between machines and compilers whose code for a text may differ."""
    return f"{features.cpu_identity()}\0{_llvm_identity()}\0{FORMAT_VERSION}"


@cache
def sources_identity(folders: tuple[str, ...]) -> str:
    """Text that differs between versions of the files in some of flambeau's folders; "" where the
    sources are not there to be read, or were written after they were imported."""
    digest = hashlib.sha256()
    try:
        for folder in folders:
            for where, inner, files in os.walk(os.path.join(_PACKAGE, folder)):
                inner.sort()
                for file in sorted(files):
                    if file.endswith(".py"):
                        path = os.path.join(where, file)
                        with open(path, "rb", buffering=0) as source:
                            content = source.read()
                            if os.fstat(source.fileno()).st_mtime > IMPORTED_AT:
                                return ""
                        digest.update(f"{path[len(_PACKAGE) :]} {len(content)} ".encode())
                        digest.update(content)
    except OSError:
        return ""
    return digest.hexdigest() if digest.digest() != hashlib.sha256().digest() else ""


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
    # Process-wide and read when the first target machine is made. On loops written with explicit
    # vectors, loop strength reduction gains nothing for a third of code generation, and selecting
    # instructions one by one where LLVM can (it falls back to whole blocks) loses nothing for
    # another third.
    for option in ("-disable-lsr", "-fast-isel"):
        binding.set_option("", option)
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


def _emit(name: str, given: Text) -> bytes:
    """The object of a text. Signal handlers run on the main thread: an exception out of one, in
    the middle of the binding's own code, has it free memory twice, and a handler that compiles
    in the middle of an import finds half a module. So that thread only waits."""
    if threading.current_thread() is not threading.main_thread():
        return _emitted(name, given)
    done: list[bytes | BaseException] = []

    def work() -> None:
        try:
            done.append(_emitted(name, given))
        except BaseException as error:
            done.append(error)

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started while the interpreter ends
        work()
    else:
        thread.join()
    if not done:  # a handler has forked, and this is the child
        work()
    if isinstance(done[0], BaseException):
        raise done[0]
    return done[0]


def _emitted(name: str, given: Text) -> bytes:
    with _emitting:
        text = text_of(given)
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


def _link(images: dict[str, Image]) -> None:
    start = time.perf_counter_ns()
    load = _Load(LoadedCode(images))
    for name, address in load.code.addresses.items():
        _loads[name] = load
        _addresses[name] = address
    STATS.link_ns += time.perf_counter_ns() - start


def _before_fork() -> None:
    """Take the lock and wait for LLVM's work of callers that are gone. LLVM's own lock is let go
    of: what else is done before a fork may compile."""
    _lock.acquire()
    with _emitting:
        pass


def _after_in_child() -> None:
    global _emitting
    _emitting = threading.RLock()
    _lock.release()


# A child must not inherit a lock that another thread held in the parent.
at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_after_in_child)
