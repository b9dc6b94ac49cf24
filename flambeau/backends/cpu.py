"""torch.backends.cpu: which vector instructions kernels are made of.

Keeps     torch's names of them.
Touches   devices.cpu.features.
Not here  the switch (debug)."""

from __future__ import annotations

from flambeau.base.missing import module_getattr


def get_cpu_capability() -> str:
    """AVX512, AVX2 or DEFAULT."""
    from flambeau.devices.cpu import features

    return {512: "AVX512", 256: "AVX2"}.get(features.vector_bits(), "DEFAULT")


__getattr__ = module_getattr(__name__)
