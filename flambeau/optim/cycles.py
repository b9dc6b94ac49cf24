"""Schedules that go round: cyclic rates, one cycle, cosines with restarts.

Keeps     momentum moves against the rate where that is asked for.
Touches   schedule.py.
Not here  the other schedules (lr_scheduler.py)."""

from __future__ import annotations

import math
import types
from typing import Any

from flambeau.optim.schedule import LRScheduler, check_optimizer, per_group, set_value


def _set_momentum(group: dict[str, Any], uses_betas: bool, momentum: float) -> None:
    if uses_betas:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _uses_betas(optimizer: Any) -> bool:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _start_momentum(optimizer: Any, uses_betas: bool, base: list[Any], highest: list[Any]) -> None:
    for low, high, group in zip(base, highest, optimizer.param_groups, strict=True):
        _set_momentum(group, uses_betas, high)
        group["max_momentum"] = high
        group["base_momentum"] = low


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr and down again, over and over (Smith, 2017)."""

    def __init__(
        self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Any = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_betas(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.use_beta1, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high a cycle, or an iteration, goes."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return float(1 / (2.0 ** (x - 1)))
        return 1.0 if self.mode == "triangular" else float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        if place <= self.step_ratio:
            height = place / self.step_ratio
        else:
            height = (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            base + (highest - base) * height * scale
            for base, highest in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            for group, base, highest in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                momentum = highest - (highest - base) * height * scale
                _set_momentum(group, self.use_beta1, momentum)
        return rates

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        keeps = function is not None and not isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = function.__dict__.copy() if keeps else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = dict(state_dict)
        attributes = given.pop("_scale_fn_custom")
        super().load_state_dict(given)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines from the base rate to eta_min that start anew (Loshchilov and Hutter, 2017)."""

    def __init__(
        self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        phase = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * phase / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go on by one epoch, or to a (fractional) epoch."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _jump(self, epoch: Any) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            times = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**times - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**times


class OneCycleLR(LRScheduler):
    """Up to max_lr and far down again, once (Smith and Topin, 2018)."""

    def __init__(
        self, optimizer: Any, max_lr: Any, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(three_phase, pct_start, self.total_steps)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, highest in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_betas(optimizer)
            highest = per_group("max_momentum", optimizer, max_momentum)
            lowest = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.use_beta1, lowest, highest)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        self._check_within_step()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"Tried to step {now} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        phases = self._schedule_phases
        for phase in phases:
            end = phase["end_step"]
            if now <= end or phase is phases[-1]:
                share = (now - start) / (end - start)
                break
            start = end
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self._between(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], share
                )
                _set_momentum(group, self.use_beta1, momentum)
        return rates


def _total(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, given in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if not isinstance(given, int) or given <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {given}")
    return epochs * steps_per_epoch


def _phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
    return {
        "end_step": end, "start_lr": rates[0], "end_lr": rates[1], "start_momentum": momenta[0],
        "end_momentum": momenta[1],
    }  # fmt: skip


def _phases(three_phase: bool, share: float, total: int) -> list[dict[str, Any]]:
    high, low = "max_momentum", "base_momentum"
    up = _phase(float(share * total) - 1, ("initial_lr", "max_lr"), (high, low))
    if not three_phase:
        return [up, _phase(total - 1, ("max_lr", "min_lr"), (low, high))]
    down = _phase(float(2 * share * total) - 2, ("max_lr", "initial_lr"), (low, high))
    return [up, down, _phase(total - 1, ("initial_lr", "min_lr"), (high, high))]
