"""What this machine can do: instruction set, vector width, cores we may use.

Keeps     cheap: reads /proc, never imports LLVM; a machine we cannot serve gets a clear error.
Touches   /proc/cpuinfo, /sys (caches, cgroups), the scheduler's affinity mask.
Not here  LLVM's own names for the CPU (jit/compiler.py)."""

from __future__ import annotations

import math
import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

from flambeau.base.config import CONFIG

_NEEDED: Final = ("avx2", "fma", "f16c", "bmi1", "bmi2", "popcnt", "sse4_1")
_IDENTITY_FIELDS: Final = ("vendor_id", "cpu family", "model", "stepping", "flags")
_CGROUP: Final = Path("/sys/fs/cgroup")
_SECOND_CACHE: Final = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")


@cache
def cpu_fields() -> dict[str, str]:
    """First processor's lines of /proc/cpuinfo; raises where flambeau cannot run."""
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "AMD64"):
        raise RuntimeError(
            "flambeau compiles for Linux on x86-64 only: this is "
            f"{sys.platform} on {os.uname().machine}. "
            "Run it on a Linux x86-64 machine with AVX2 and FMA."
        )
    fields: dict[str, str] = {}
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                break
            fields[name.strip()] = value.strip()
    flags = set(fields.get("flags", "").split())
    missing = [flag for flag in _NEEDED if flag not in flags]
    if missing:
        raise RuntimeError(
            f"flambeau needs a CPU with AVX2 and FMA: {fields.get('model name', 'this CPU')} "
            f"lacks {', '.join(missing)}. Run it on a CPU from 2015 (Intel) or 2017 (AMD) or later."
        )
    return fields


@cache
def cpu_identity() -> str:
    """Text that differs between CPUs whose compiled code may differ."""
    fields = cpu_fields()
    return "|".join(" ".join(sorted(fields.get(name, "").split())) for name in _IDENTITY_FIELDS)


@cache
def second_cache_bytes() -> int:
    """Bytes of a core's second-level cache; 256 KiB where the system does not say."""
    try:
        size = _SECOND_CACHE.read_text().strip()
        return int(size.removesuffix("K")) << 10
    except (OSError, ValueError):
        return 256 << 10


@cache
def has_avx512() -> bool:
    """Whether the 512-bit instructions that LLVM uses for float vectors are there."""
    flags = set(cpu_fields()["flags"].split())
    return {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags


@cache
def cycles_per_second() -> float:
    """Rate of the time stamp counter, roughly: Linux derives bogomips from it, two a cycle."""
    try:
        rate = float(cpu_fields()["bogomips"]) * 1e6 / 2
    except (KeyError, ValueError):
        rate = 0.0
    return rate if 5e8 < rate < 1e10 else 2.5e9


def vector_bits() -> int:
    """Width of the vectors in new kernels: the switch, or what the CPU has."""
    return CONFIG.vector_bits or (512 if has_avx512() else 256)


def _quota_of(folder: Path) -> float | None:
    """CPUs granted by one cgroup folder, version 2 or 1; None if it sets no limit."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        period_us = int((folder / "cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 and period_us > 0 else None
    except (OSError, ValueError):
        return None


def _cgroup_quota() -> float | None:
    """Smallest CPU quota of this process's cgroups and of those above them."""
    folders: set[Path] = set()
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if number == "0" and not controllers:
            root = _CGROUP
        elif "cpu" in controllers.split(","):
            root = _CGROUP / controllers
            root = root if root.is_dir() else _CGROUP / "cpu"
        else:
            continue
        folder = root / group.lstrip("/")
        while folder != root and root in folder.parents:
            folders.add(folder)
            folder = folder.parent
        folders.add(root)
    quotas = [quota for quota in map(_quota_of, folders) if quota is not None]
    return min(quotas, default=None)


@cache
def usable_cores() -> int:
    """Cores we may keep busy: the smaller of affinity and quota, rounded up, at least one."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_quota()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def n_threads() -> int:
    """Threads that kernels use, the caller's included: what was asked for, else usable_cores."""
    return CONFIG.threads or usable_cores()
