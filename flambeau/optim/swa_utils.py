"""Averages of a model's parameters over training: stochastic weight averaging, moving averages.

Keeps     the averaged model is a copy under `module`; averages are written in place.
Touches   nn.modules, tensor.functions, schedule.py.
Not here  the optimizers.
Source    Izmailov et al., 2018; torch.optim.swa_utils."""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.nn.modules.module import Module
from flambeau.optim.lr_scheduler import LRScheduler
from flambeau.tensor import creation

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A moving average of lists: own = decay * own + (1 - decay) * current."""
    _check_decay(decay)

    def ema_update(own: Any, current: Any, _: Any) -> None:
        with no_grad():
            for mine, given in zip(own, current, strict=True):
                if mine.is_floating_point() or mine.is_complex():
                    mine.lerp_(given, 1 - decay)
                else:
                    mine.copy_(mine * decay + given * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """An average of lists in which every model counts alike."""

    def swa_update(own: Any, current: Any, num_averaged: Any) -> None:
        share = 1.0 / (int(num_averaged) + 1)
        with no_grad():
            for mine, given in zip(own, current, strict=True):
                if mine.is_floating_point() or mine.is_complex():
                    mine.lerp_(given, share)
                else:
                    mine.copy_(mine + (given - mine) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A moving average of one parameter."""
    _check_decay(decay)

    def ema_update(own: Any, current: Any, num_averaged: Any) -> Any:
        with no_grad():
            return decay * own + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """An average of one parameter in which every model counts alike."""

    def swa_update(own: Any, current: Any, num_averaged: Any) -> Any:
        with no_grad():
            return own + (current - own) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the calls of update_parameters.

    avg_fn         (own, current, number averaged) -> new; None: every model counts alike
    multi_avg_fn   the same for lists, writing into the first
    use_buffers    whether buffers are averaged too, not copied

    >>> import flambeau as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    2.0
    """

    n_averaged: Any

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Any = None, multi_avg_fn: Any = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", creation.tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Take a model's present parameters into the averages; the first are copied."""
        own: Any = self.module.parameters()
        given: Any = model.parameters()
        if self.use_buffers:
            own = itertools.chain(own, self.module.buffers())
            given = itertools.chain(given, model.buffers())
        pairs = [(mine.detach(), each.detach()) for mine, each in zip(own, given, strict=False)]
        with no_grad():
            if int(self.n_averaged) == 0:
                for mine, each in pairs:
                    mine.copy_(each)
            elif self.avg_fn is not None:
                for mine, each in pairs:
                    mine.copy_(self.avg_fn(mine, each, self.n_averaged))
            elif pairs:
                update = self.multi_avg_fn or get_swa_multi_avg_fn()
                update([mine for mine, _ in pairs], [each for _, each in pairs], self.n_averaged)
            if not self.use_buffers:
                for mine, each in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.detach().copy_(each.detach())
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms over a loader's batches."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs.to(device) if device is not None else inputs)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


def _linear(share: float) -> float:
    return share


def _cosine(share: float) -> float:
    return (1 - math.cos(math.pi * share)) / 2


class SWALR(LRScheduler):
    """Anneals learning rates to swa_lr over anneal_epochs steps, then keeps them."""

    def __init__(
        self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups: swa_lr has "
                f"{len(rates)}, optimizer.param_groups has {len(groups)}"
            )
        for rate, group in zip(rates, groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates, from the present ones."""
        if not getattr(self, "_get_lr_called_within_step", True):
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        step = max(self._step_count - 1, 0 if self.anneal_epochs else 1)
        rule = _cosine if self._anneal_strategy == "cos" else _linear
        length = max(1, self.anneal_epochs)
        before = rule(max(0.0, min(1.0, (step - 1) / length)))
        now = rule(max(0.0, min(1.0, step / length)))
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # What the rate was before annealing, from what it is now.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
