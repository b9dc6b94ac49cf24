"""`python -m flambeau doctor`: what a bug report needs, and a result that was computed here.

Keeps     every line is looked up or computed when asked, nothing is claimed.
Touches   the whole package, read only.
Not here  per-kernel facts (debug)."""

from __future__ import annotations

from flambeau import version


def report() -> str:
    """Versions, the machine and a small computation, one fact a line."""
    facts = {"flambeau": version.__version__, **version.facts()}
    facts["computes"] = _computed()
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())


def _computed() -> str:
    import flambeau

    left = flambeau.arange(6.0).reshape(2, 3)
    left.requires_grad_()
    total = (left @ left.T).sum()
    total.backward()
    return f"(a @ a.T).sum() = {total.item():g}, gradient {left.grad.tolist()}"
