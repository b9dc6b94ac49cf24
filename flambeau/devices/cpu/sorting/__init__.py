"""Putting elements in order: makers that `b.kernel` names as "sorting.<maker>"."""

from flambeau.devices.cpu.sorting.plan import sort, topk

__all__ = ["sort", "topk"]
