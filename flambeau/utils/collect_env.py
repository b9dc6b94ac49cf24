"""torch.utils.collect_env: versions and the machine, for bug reports.

Keeps     every line is looked up when asked, nothing is claimed.
Touches   git and package metadata.
Not here  a result that was computed here (`python -m flambeau doctor`)."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from flambeau.base.config import VERSION
from flambeau.base.missing import module_getattr


@functools.cache
def git_commit() -> str | None:
    """The commit this source tree stands at; None for an installed package."""
    import subprocess

    root = str(Path(__file__).resolve().parents[2])
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

    found = {"git": git_commit() or "an installed package"}
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


def get_pretty_env_info() -> str:
    """The facts, one a line, torch's words where they mean the same."""
    import platform

    found = facts()
    lines = [
        f"PyTorch version: {VERSION}",
        "Is debug build: False",
        "CUDA used to build PyTorch: None",
        "ROCM used to build PyTorch: N/A",
        "",
        f"OS: {platform.platform()}",
        f"Libc version: {'-'.join(platform.libc_ver()) or 'N/A'}",
        "",
        f"Python version: {found['python']}",
        "Is CUDA available: False",
        f"CPU: {platform.machine()}, {found['processors']} usable",
        "",
        "Versions of relevant libraries:",
        f"[pip3] flambeau=={VERSION} ({found['git']})",
        *(f"[pip3] {name}=={found[name]}" for name in ("llvmlite", "numpy")),
    ]
    return "\n".join(lines)


def main() -> None:
    """Print it: python -m flambeau run -m torch.utils.collect_env."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


__getattr__ = module_getattr(__name__)

if __name__ == "__main__":
    main()
