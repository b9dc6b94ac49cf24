"""AdamW (Loshchilov and Hutter, 2019): Adam whose weight decay goes past the averages.

Keeps     torch's defaults.
Touches   adam.py.
Not here  the arithmetic (ops.update.optimizers)."""

from __future__ import annotations

from typing import Any

from flambeau.optim.adam import Adam


class AdamW(Adam):
    """Adam with decoupled weight decay, 0.01 unless given."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
