"""torch.jit.annotations: the names of types that files for scripting import from here.

Keeps     Python's own.
Touches   nothing.
Not here  scripting: there is none."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - torch's names

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union"]
