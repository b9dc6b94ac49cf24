"""torch.version: the version, and facts about this build that a bug report needs.

Keeps     the names of torch's CPU build (cuda, hip, rocm and xpu are None).
Touches   git and package metadata, only when facts are asked for.
Not here  the number itself (base/config.py)."""

from __future__ import annotations

import functools
import os
from typing import Final

from flambeau.base.config import VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]  # noqa: F822

__version__: Final = VERSION
debug: Final = False
cuda: Final[str | None] = None
hip: Final[str | None] = None
rocm: Final[str | None] = None
xpu: Final[str | None] = None


@functools.cache
def _git_version() -> str | None:
    """The commit this source tree stands at; None for an installed package."""
    import subprocess

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not os.path.exists(os.path.join(root, ".git")):
        return None
    command = ["git", "-C", root, "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def facts() -> dict[str, str]:
    """Versions of what flambeau stands on, and the machine, looked up when called."""
    import platform
    from importlib import metadata

    found = {"git": _git_version() or "an installed package"}
    for package in ("llvmlite", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    found["system"] = f"{platform.system()} {platform.machine()}"
    try:
        found["processors"] = str(len(os.sched_getaffinity(0)))
    except AttributeError:  # systems without affinity
        found["processors"] = str(os.cpu_count())
    return found


def __getattr__(name: str) -> object:
    if name == "git_version":
        return _git_version()
    from flambeau.base.missing import missing_name

    raise missing_name(__name__, name)
