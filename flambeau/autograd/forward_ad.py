"""torch.autograd.forward_ad: refused; forward mode is not part of flambeau.

Keeps     a name that cannot be used says what to use instead.
Touches   base.errors.
Not here  jvp by two reverse passes (functional.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        helped(
            f"forward_ad.{name} is not supported: there is no forward-mode differentiation",
            fix="torch.autograd.functional.jvp computes Jacobian-vector products",
        )
    )


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)

    def function(*arguments: Any, **named: Any) -> Any:
        raise _refused(name)

    if name in ("dual_level", "make_dual", "unpack_dual", "enter_dual_level", "exit_dual_level"):
        return function
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")
