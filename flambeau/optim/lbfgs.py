"""L-BFGS (Liu and Nocedal, 1989), with a line search that satisfies the strong Wolfe conditions.

Keeps     torch's order of operations and its state.
Touches   optimizer.py, wolfe.py.
Not here  the line search (wolfe.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.optim import group as groups
from flambeau.optim.each import as_reals
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.wolfe import Bounds, cubic_minimum, strong_wolfe
from flambeau.tensor import functions as t


class LBFGS(Optimizer):
    """A quasi-Newton method; step() needs a closure that computes the loss anew."""

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        groups.check_rate(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_gradient(self) -> Any:
        parts = []
        for parameter in self._params:
            gradient = parameter.grad
            if gradient is None:
                gradient = t.zeros_like(parameter)
            if getattr(gradient, "is_sparse", False):
                gradient = gradient.to_dense()
            parts.append(as_reals(gradient).reshape(-1))
        return t.cat(parts, 0)

    def _move(self, length: Any, direction: Any) -> None:
        """Parameters += length * direction."""
        start = 0
        for parameter in map(as_reals, self._params):
            count = parameter.numel()
            part = direction[start : start + count].view(parameter.shape)
            parameter.add_(part, alpha=length)
            start += count

    def _direction(self, state: Any, gradient: Any, history_size: int) -> Any:
        """Where to go: minus the gradient times the estimated inverse Hessian."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change = gradient.sub(state["prev_flat_grad"])
        step = state["d"].mul(state["t"])
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(dirs) == history_size:
                for each in (dirs, steps, ro):
                    each.pop(0)
            dirs.append(change)
            steps.append(step)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        if "al" not in state:
            state["al"] = [None] * history_size
        shares = state["al"]
        q = gradient.neg()
        for number in reversed(range(len(dirs))):
            shares[number] = steps[number].dot(q) * ro[number]
            q.add_(dirs[number], alpha=-shares[number])
        r = t.mul(q, state["H_diag"])
        for number in range(len(dirs)):
            back = dirs[number].dot(r) * ro[number]
            r.add_(steps[number], alpha=shares[number] - back)
        return r

    def step(self, closure: Any) -> Any:  # type: ignore[override]
        """Up to max_iter iterations; returns the closure's first loss."""
        with no_grad():
            return self._step(closure)

    def _step(self, closure: Any) -> Any:
        def evaluated() -> Any:
            with enable_grad():
                return closure()

        group = self.param_groups[0]
        lr = groups.number(group["lr"])
        least = group["tolerance_grad"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluated()
        loss = float(first_loss)
        n_evals = 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if gradient.abs().max() <= least:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, gradient, group["history_size"])
            before = state.get("prev_flat_grad")
            if before is None:
                state["prev_flat_grad"] = gradient.clone()
            else:
                before.copy_(gradient)
            state["prev_loss"] = previous = loss
            is_first = state["n_iter"] == 1
            length: Any = min(1.0, 1.0 / gradient.abs().sum()) * lr if is_first else lr
            slope = gradient.dot(direction)
            state["d"], state["t"] = direction, length
            if slope > -group["tolerance_change"]:
                break
            more = 0
            is_last = iteration == group["max_iter"]
            if group["line_search_fn"] is not None:
                loss, gradient, length, more = self._searched(
                    evaluated, group, direction, length, loss, gradient, slope, n_evals
                )
                state["t"] = length
                self._move(length, direction)
            else:
                self._move(length, direction)
                if not is_last:
                    loss = float(evaluated())
                    gradient = self._flat_gradient()
                    more = 1
            n_evals += more
            state["func_evals"] += more
            if (
                is_last
                or n_evals >= group["max_eval"]
                or gradient.abs().max() <= least
                or direction.mul(length).abs().max() <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _searched(
        self, evaluated: Any, group: dict[str, Any], direction: Any, length: Any, loss: float,
        gradient: Any, slope: Any, n_evals: int,
    ) -> tuple[float, Any, Any, int]:  # fmt: skip
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [parameter.clone() for parameter in self._params]

        def at(step: Any) -> tuple[float, Any]:
            self._move(step, direction)
            value = float(evaluated())
            found = self._flat_gradient()
            for parameter, kept in zip(self._params, start, strict=True):
                parameter.copy_(kept)
            return value, found

        return strong_wolfe(
            at, length, direction, loss, gradient, slope,
            max_steps=group["max_eval"] - n_evals,
        )  # fmt: skip


def _strong_wolfe(
    obj_func: Any, x: Any, t: Any, d: Any, f: float, g: Any, gtd: Any, c1: float = 1e-4,
    c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Any, Any, int]:  # fmt: skip
    """The line search by the name and with the arguments by which libraries call it."""
    bounds = Bounds(c1, c2, tolerance_change)
    return strong_wolfe(
        lambda step: obj_func(x, step, d), t, d, f, g, gtd, max_steps=max_ls, bounds=bounds
    )


_cubic_interpolate = cubic_minimum
