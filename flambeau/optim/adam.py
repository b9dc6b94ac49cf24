"""Adam (Kingma and Ba, 2015), AMSGrad and decoupled weight decay.

Keeps     torch's single-tensor arithmetic; corrections are worked out in Python doubles.
Touches   ops.update through update.py.
Not here  the arithmetic (ops.update.optimizers), AdamW (adamw.py)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.optim import differentiable
from flambeau.optim import group as groups
from flambeau.optim.each import each_step
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.update import update
from flambeau.tensor import Tensor

_item = dict.__getitem__


def _check_beta(beta: Tensor, index: int, is_listed: bool) -> None:
    """torch's errors of a beta that is a tensor."""
    if is_listed:
        raise ValueError(
            f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
        )
    if beta.numel() != 1:
        raise ValueError(f"Tensor betas[{index}] must be 1-element")


class Adam(Optimizer):
    """Steps scaled by running averages of gradients and of their squares.

    >>> import flambeau as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> w.grad = torch.tensor([1.0, -3.0])
    >>> torch.optim.Adam([w], lr=0.25).step()
    >>> w
    tensor([0.7500, 1.2500], requires_grad=True)
    """

    _later_settings: ClassVar[dict[str, Any]] = {
        "amsgrad": False, "maximize": False, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False, "foreach": None, "fused": None,
    }  # fmt: skip

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        groups.check_not_negative(epsilon=eps)
        groups.check_betas(betas)
        groups.check_not_negative(weight_decay=weight_decay)
        if not any(all(isinstance(each, kind) for each in betas) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for index, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                _check_beta(beta, index, bool(foreach) and not capturable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        groups.check_flags(defaults)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; returns the closure's loss."""
        if self.defaults["differentiable"]:
            return each_step(self, closure, differentiable.start_adam, differentiable.adam)
        loss = groups.closed(closure, self)
        for group in self.param_groups:
            groups.check_capturable(group)
            amsgrad = group["amsgrad"]
            by_count: dict[float, tuple[list[Any], ...]] = {}
            lists: tuple[list[Any], ...] | None = None
            last = -1.0
            for parameter in group["params"]:
                gradient = parameter._grad
                if gradient is None:
                    continue
                state = groups.counted_state(self, parameter)
                if not state:
                    self._start(state, parameter, amsgrad)
                count = state.advance()
                if lists is None or count != last:
                    lists = by_count.setdefault(count, ([], [], [], [], []))
                    last = count
                lists[0].append(parameter)
                lists[1].append(gradient)
                lists[2].append(_item(state, "exp_avg"))
                lists[3].append(_item(state, "exp_avg_sq"))
                if amsgrad:
                    lists[4].append(_item(state, "max_exp_avg_sq"))
            for count, gathered in by_count.items():
                self._update(group, count, gathered)
        return loss

    def _start(self, state: Any, parameter: Any, amsgrad: bool) -> None:
        state["step"] = 0
        state["exp_avg"] = groups.zeros_of(parameter)
        state["exp_avg_sq"] = groups.zeros_of(parameter)
        if amsgrad:
            state["max_exp_avg_sq"] = groups.zeros_of(parameter)

    def _update(self, group: dict[str, Any], count: float, lists: tuple[list[Any], ...]) -> None:
        beta1, beta2 = map(groups.number, group["betas"])
        lr, decay = groups.number(group["lr"]), group["weight_decay"]
        is_decoupled = group["decoupled_weight_decay"]
        update("adam_update")(
            lists,
            step_size=lr / (1 - beta1**count), root_correction=(1 - beta2**count) ** 0.5,
            one_minus_beta1=1 - beta1, beta2=beta2, one_minus_beta2=1 - beta2, eps=group["eps"],
            weight_decay=0 if is_decoupled else decay,
            keep=1 - lr * decay if is_decoupled and decay != 0 else 1,
            maximize=group["maximize"],
        )  # fmt: skip
