"""The switches as context managers: with flambeau.debug.fuse(False): ...

Keeps     no switch changes a bit of any result; pending work is run before and after.
Touches   base.config, engine (stream, run, plan), devices.cpu.jit.
Not here  what a switch means (base/config.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.base.config import CONFIG
from flambeau.engine import run, stream


@contextmanager
def _switched(name: str, value: Any, *, plans: bool) -> Iterator[None]:
    stream.current().synchronize(f"debug.{name}()")
    before = getattr(CONFIG, name)
    setattr(CONFIG, name, value)
    if plans:
        run.forget_plans()
    try:
        yield
    finally:
        stream.current().synchronize(f"debug.{name}()")
        setattr(CONFIG, name, before)
        stream.current().renew()
        if plans:
            run.forget_plans()


@contextmanager
def fuse(enabled: bool) -> Iterator[None]:
    """False: every operator is a segment of its own, as FLAMBEAU_FUSE=0."""
    with _switched("fuse", bool(enabled), plans=False):
        stream.current().renew()
        yield


def fuse_new(enabled: bool) -> Any:
    """True: a segment is fused the first time it is seen, as FLAMBEAU_FUSE_NEW=1. Else a small one
    is run operator by operator at first, which costs less than planning it, and fused when it
    comes again."""
    return _switched("fuse_new", bool(enabled), plans=False)


def threads(count: int | None) -> Any:
    """Number of threads, as FLAMBEAU_THREADS; None: as many as the machine allows."""
    return _switched("threads", count, plans=True)


def vector_bits(bits: int | None) -> Any:
    """Width of vectors, 256 or 512, as FLAMBEAU_VECTOR_BITS."""
    if bits not in (None, 256, 512):
        raise ValueError(f"vector_bits({bits}): expected 256 or 512")
    return _switched("vector_bits", bits, plans=True)


def codegen_level(level: int) -> Any:
    """LLVM's code generation level, 0 to 3."""
    if level not in (0, 1, 2, 3):
        raise ValueError(f"codegen_level({level}): expected 0, 1, 2 or 3")
    return _switched("codegen_level", level, plans=True)


def cache_dir(path: str | None) -> Any:
    """Folder of compiled objects, as FLAMBEAU_CACHE_DIR."""
    return _switched("cache_dir", path, plans=False)


def keep_plans(enabled: bool) -> Any:
    """False: plans are neither read from the disk nor written there, as FLAMBEAU_KEEP_PLANS=0."""
    return _switched("keep_plans", bool(enabled), plans=False)
