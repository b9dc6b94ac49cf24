"""torch.special: special functions, by the names that torch has for them there.

Keeps     an operator's function is the operator's.
Touches   tensor.functions and polynomials.py, lazily.
Not here  any logic."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import missing_name
from flambeau.tensor.overriding.serving import served

_PREFIX = "special."
_WRITTEN = ("multigammaln", "polygamma")  # of several operators


def __getattr__(name: str) -> Any:
    from flambeau.tensor import functions

    if name in _WRITTEN:
        from flambeau.tensor.public.statistics import gamma

        return served(getattr(gamma, name), name, "torch.special")
    if "_polynomial_" in name:
        from flambeau.special.polynomials import FUNCTIONS

        found = FUNCTIONS.get(name)
    else:
        found = None if name.startswith("__") else functions.public(_PREFIX + name)
    if found is None:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from flambeau.tensor import functions

    names = functions.public_names()
    own = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    from flambeau.special.polynomials import FUNCTIONS

    return sorted([*own, *_WRITTEN, *FUNCTIONS])
