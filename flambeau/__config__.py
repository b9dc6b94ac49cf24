"""torch.__config__: what flambeau stands on, as text.

Keeps     every line is looked up when asked.
Touches   utils.collect_env, devices.cpu.features, tensor.public.settings.
Not here  the facts themselves (utils/collect_env.py)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.utils.collect_env import facts


def show() -> str:
    """Versions and the machine, one fact a line."""
    from flambeau.devices.cpu import features

    lines = [f"  - {name}: {value}" for name, value in facts().items()]
    return "\n".join(
        ["flambeau stands on:", *lines, f"  - vectors: {features.vector_bits()} bits", ""]
    )


def parallel_info() -> str:
    """How many threads kernels use, and of how many."""
    from flambeau.devices.cpu import features
    from flambeau.tensor.public import settings

    return (
        f"flambeau's worker team:\n\tget_num_threads() : {settings.get_num_threads()}\n"
        f"\tget_num_interop_threads() : {settings.get_num_interop_threads()}\n"
        f"usable cores : {features.usable_cores()}\n"
    )


__getattr__ = module_getattr(__name__)
