"""Turns LLVM text into addresses of native code.

Keeps     everything missing in a call is linked in one go; code stays where it is until
          `release`, so that no thread can be in code that is gone; a process whose kernels are
          all on disk never imports LLVM.
Touches   image, object_cache; compiler, imported at the first kernel that is compiled.
Not here  writing the text (codegen), running it (runner)."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from flambeau.base.config import CONFIG, IMPORTED_AT
from flambeau.devices.cpu import features
from flambeau.devices.cpu.jit.image import Image, LoadedCode
from flambeau.devices.cpu.jit.object_cache import ObjectCache, default_folder
from flambeau.devices.forks import at_fork

FORMAT_VERSION: Final = 3


class Statistics:
    """What this process has compiled and loaded so far."""

    __slots__ = ("compiled", "loaded")

    def __init__(self) -> None:
        self.compiled = 0
        self.loaded = 0


STATS: Final = Statistics()

_PACKAGE: Final = os.path.abspath(__file__).rsplit(os.sep, 4)[0]

_lock = threading.RLock()
_addresses: dict[str, int] = {}
# Function -> the key that its object is kept under.
_keys: dict[str, str] = {}
_loads: dict[str, _Load] = {}
# The switch that names a folder -> what is kept there.
_caches: dict[str | None, ObjectCache] = {}


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
    image = _uninterrupted(partial(_compiled, name, given))
    STATS.compiled += 1
    object_store().store(key, image.pack())
    return image


def _compiled(name: str, given: Text) -> Image:
    from flambeau.devices.cpu.jit.compiler import compiled_image

    return compiled_image(name, text_of(given))


def _uninterrupted(make: Callable[[], Image]) -> Image:
    """What `make` gives, made by a thread of its own where this is the main one. Signal handlers
    run on that: an exception out of one, in the middle of LLVM's binding, has it free memory twice,
    and a handler that compiles in the middle of an import finds half a module."""
    if threading.current_thread() is not threading.main_thread():
        return make()
    done: list[Image | BaseException] = []

    def work() -> None:
        try:
            done.append(make())
        except BaseException as error:
            done.append(error)

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started while the interpreter ends
        work()
    except KeyError as error:  # threading's slip where a signal handler raises while one starts
        raise error.__context__ or error from None
    else:
        thread.join()
    if not done:  # a handler has forked, and this is the child
        work()
    if isinstance(done[0], BaseException):
        raise done[0]
    return done[0]


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


def _link(images: dict[str, Image]) -> None:
    load = _Load(LoadedCode(images))
    for name, address in load.code.addresses.items():
        _loads[name] = load
        _addresses[name] = address


def _compiler() -> ModuleType | None:
    """The module that compiles, if it was ever needed."""
    return sys.modules.get(f"{__name__}.compiler")


def _before_fork() -> None:
    """Take the lock and wait for LLVM's work of callers that are gone. LLVM's own lock is let go
    of: what else is done before a fork may compile."""
    _lock.acquire()
    if (compiler := _compiler()) is not None:
        compiler.wait_until_idle()


def _after_in_child() -> None:
    if (compiler := _compiler()) is not None:
        compiler.forget_lock()
    _lock.release()


# A child must not inherit a lock that another thread held in the parent.
at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_after_in_child)
