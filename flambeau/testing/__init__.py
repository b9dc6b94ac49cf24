"""torch.testing: comparing values within tolerances, and tensors to test with.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {"assert_allclose": "compare", "assert_close": "compare", "make_tensor": "make"}

__getattr__, __dir__ = lazy_names(__name__, _WHERE)
