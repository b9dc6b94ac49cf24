"""torch._subclasses: tensors without data, as tracers have them.

Keeps     names are found when used.
Touches   the file beside it.
Not here  tensors of device "meta"."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {"FakeTensor": "fake_tensor"}

__getattr__, __dir__ = lazy_names(__name__, _WHERE, ("fake_tensor",))
