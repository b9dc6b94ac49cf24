"""A small network trained by every optimizer, and every schedule's rates; run under torch and
under flambeau.

Keeps     each case is an optimizer or schedule as text; an answer holds 20 losses, the state's
          last values, or the rates of 12 epochs.
Touches   whichever module is given as `torch`.
Not here  recording (record_training.py), comparing (tests/optim/test_recorded.py)."""

from __future__ import annotations

import warnings
from typing import Any

_MATRICES = "[each for each in p if each.ndim == 2]"
OPTIMIZERS = (
    "optim.SGD(p, 0.1)",
    "optim.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)",
    "optim.SGD(p, 0.1, momentum=0.9, nesterov=True)",
    "optim.SGD(p, 0.01, maximize=True)",
    "optim.Adam(p, 0.01)",
    "optim.Adam(p, 0.01, amsgrad=True, weight_decay=0.1)",
    "optim.AdamW(p, 0.01)",
    "optim.AdamW(p, 0.01, maximize=True, amsgrad=True)",
    "optim.RMSprop(p)",
    "optim.RMSprop(p, momentum=0.5, centered=True, weight_decay=0.1)",
    "optim.Adagrad(p, lr_decay=0.1, initial_accumulator_value=0.1)",
    "optim.Adadelta(p)",
    "optim.Adafactor(p, weight_decay=0.1)",
    "optim.Adafactor(p, 0.1, beta2_decay=-0.6, eps=(1e-4, 1e-2), d=2.0, maximize=True)",
    f"optim.Muon({_MATRICES}, 0.1)",
    f"optim.Muon({_MATRICES}, nesterov=False, ns_steps=3, adjust_lr_fn='match_rms_adamw')",
    "optim.Adamax(p, weight_decay=0.1)",
    "optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True)",
    "optim.NAdam(p)",
    "optim.RAdam(p, 0.01)",
    "optim.Rprop(p)",
    "optim.ASGD(p, t0=5, lambd=0.1)",
    "optim.LBFGS(p, max_iter=3)",
    "optim.LBFGS(p, line_search_fn='strong_wolfe', history_size=4, max_iter=3)",
)
_TWO = "[schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.9)]"
SCHEDULES = (
    "schedules.StepLR(o, 3)",
    "schedules.MultiStepLR(o, [2, 5, 5])",
    "schedules.ExponentialLR(o, 0.9)",
    "schedules.ConstantLR(o, 0.5, 3)",
    "schedules.LinearLR(o, 0.3, total_iters=4)",
    "schedules.CosineAnnealingLR(o, 5, 0.01)",
    "schedules.PolynomialLR(o, 6, 2.0)",
    "schedules.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)])",
    "schedules.MultiplicativeLR(o, lambda e: 0.9)",
    "schedules.CosineAnnealingWarmRestarts(o, 3, 2)",
    "schedules.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode='triangular2')",
    "schedules.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode='exp_range', gamma=0.9)",
    "schedules.OneCycleLR(o, 0.5, total_steps=12)",
    "schedules.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=5, three_phase=True)",
    "schedules.OneCycleLR(o, 0.5, total_steps=8)",
    f"schedules.SequentialLR(o, {_TWO}, [3])",
    f"schedules.ChainedScheduler({_TWO})",
    "schedules.ReduceLROnPlateau(o, patience=1, cooldown=1)",
)


class Training:
    """What a module that offers torch's API says to each case."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.names = {"optim": torch.optim, "schedules": torch.optim.lr_scheduler}

    def network(self) -> tuple[Any, Any, Any]:
        """(network, inputs, targets), always the same."""
        torch = self.torch
        torch.manual_seed(3)
        nn = torch.nn
        made = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
        inputs = torch.empty(7, 3, dtype=torch.float64).uniform_(-1, 1)
        return made, inputs, torch.empty(7, 2, dtype=torch.float64).uniform_(-1, 1)

    def trained(self, text: str, steps: int = 20) -> dict[str, Any]:
        """Losses of the steps, the optimizer's repr and state; it is saved and loaded half way."""
        network, inputs, targets = self.network()

        def made() -> Any:
            return eval(text, {**self.names, "p": network.parameters()})

        optimizer = made()

        def closure() -> Any:
            optimizer.zero_grad()
            loss = self.torch.nn.functional.mse_loss(network(inputs), targets)
            loss.backward()
            return loss

        losses = []
        for step in range(steps):
            losses.append(float(optimizer.step(closure)))
            if step == steps // 2 and "LBFGS" not in text:
                state = optimizer.state_dict()
                optimizer = made()
                optimizer.load_state_dict(state)
        state = [
            [name, str(value.dtype), value.double().sum().item()]
            for each in optimizer.state_dict()["state"].values()
            for name, value in each.items()
            if "LBFGS" not in text
        ]
        return {"losses": losses, "repr": repr(optimizer), "state": state}

    def scheduled(self, text: str, epochs: int = 12) -> dict[str, Any]:
        """Rates and momenta after each epoch."""
        torch = self.torch
        one, other = (torch.ones(2, requires_grad=True) for _ in range(2))
        groups = [{"params": [one]}, {"params": [other], "lr": 0.5}]
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        schedule = eval(text, {**self.names, "o": optimizer})
        rates: list[Any] = []
        for epoch in range(epochs):
            optimizer.step()
            rates.append([[g["lr"], g["momentum"]] for g in optimizer.param_groups])
            try:
                schedule.step(*([1 / (1 + min(epoch, 4))] if "Plateau" in text else []))
            except ValueError as error:
                return {"rates": rates, "error": str(error).splitlines()[0]}
        return {"rates": rates, "last": schedule.get_last_lr()}

    def answer(self, text: str) -> dict[str, Any]:
        """The answer to one case."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.trained(text) if text in OPTIMIZERS else self.scheduled(text)

    def all(self) -> dict[str, Any]:
        """The answers to all cases."""
        return {text: self.answer(text) for text in (*OPTIMIZERS, *SCHEDULES)}
