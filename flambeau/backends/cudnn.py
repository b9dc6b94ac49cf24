"""torch.backends.cudnn: remembered settings of a library that is not there.

Keeps     benchmark, deterministic and their like can be set and read.
Touches   nothing.
Not here  determinism, which always holds (docs/numerics.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.base.missing import module_getattr

enabled: bool = True
benchmark: bool = False
benchmark_limit: int = 10
deterministic: bool = False
allow_tf32: bool = True


def is_available() -> bool:
    """Whether cuDNN can be used: no."""
    return False


def version() -> int | None:
    """The version of cuDNN: there is none."""
    return None


def is_acceptable(tensor: object) -> bool:
    """Whether cuDNN takes a tensor: no."""
    return False


@contextmanager
def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10,
    deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none",
) -> Iterator[None]:  # fmt: skip
    """Settings for a while."""
    given = {"enabled": enabled, "benchmark": benchmark, "benchmark_limit": benchmark_limit,
             "deterministic": deterministic, "allow_tf32": allow_tf32}  # fmt: skip
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)


__getattr__ = module_getattr(__name__)
