"""A line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, 3.5).

Keeps     torch's bracketing, zoom and tolerances, step by step.
Touches   tensors through their methods.
Not here  directions (lbfgs.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Bounds(NamedTuple):
    """What a step has to satisfy, and where brackets are small enough."""

    sufficient: float = 1e-4
    curvature: float = 0.9
    smallest: float = 1e-9


_USUAL = Bounds()


def cubic_minimum(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    """Where the cubic through two points with given slopes is smallest, within bounds."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        found = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        found = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(found, low), high)


class _Point:
    """A step tried: its length, the loss, the gradient and the slope there."""

    __slots__ = ("gradient", "length", "loss", "slope")

    def __init__(self, length: Any, loss: Any, gradient: Any, slope: Any) -> None:
        self.length = length
        self.loss = loss
        self.gradient = gradient
        self.slope = slope


def strong_wolfe(
    at: Callable[[Any], tuple[float, Any]], length: Any, direction: Any, loss: float,
    gradient: Any, slope: Any, max_steps: int = 25, bounds: Bounds = _USUAL,
) -> tuple[float, Any, Any, int]:  # fmt: skip
    """(loss, gradient, step length, evaluations) of a step that satisfies the conditions."""
    reach = direction.abs().max()
    start = _Point(0, loss, gradient.clone(), slope)

    def tried(step: Any) -> _Point:
        value, found = at(step)
        return _Point(step, value, found, found.dot(direction))

    def too_high(point: _Point) -> Any:
        return point.loss > (loss + bounds.sufficient * point.length * slope)

    new = tried(length)
    n_evals, n_steps = 1, 0
    before = start
    bracket: list[_Point] = []
    while n_steps < max_steps:
        if too_high(new) or (n_steps > 1 and new.loss >= before.loss):
            bracket = [before, new]
        elif abs(new.slope) <= -bounds.curvature * slope:
            return new.loss, new.gradient, new.length, n_evals
        elif new.slope >= 0:
            bracket = [before, new]
        if bracket:
            break
        least = new.length + 0.01 * (new.length - before.length)
        step = cubic_minimum(
            before.length, before.loss, before.slope, new.length, new.loss, new.slope,
            bounds=(least, new.length * 10),
        )  # fmt: skip
        before = new
        new = tried(step)
        n_evals += 1
        n_steps += 1
    if n_steps == max_steps:
        bracket = [start, new]
    low, more = _zoomed(bracket, tried, too_high, slope, reach, max_steps - n_steps, bounds)
    return low.loss, low.gradient, low.length, n_evals + more


def _zoomed(
    bracket: list[_Point],
    tried: Any,
    too_high: Any,
    slope: Any,
    reach: Any,
    max_steps: int,
    limits: Bounds,
) -> tuple[_Point, int]:
    """The best point of a bracket made smaller and smaller, and how many were tried."""
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    is_stuck = False
    n_evals = 0
    while n_evals < max_steps:
        first, second = bracket
        if abs(second.length - first.length) * reach < limits.smallest:
            break
        step = cubic_minimum(
            first.length, first.loss, first.slope, second.length, second.loss, second.slope
        )
        top = max(first.length, second.length)
        bottom = min(first.length, second.length)
        margin = 0.1 * (top - bottom)
        if min(top - step, step - bottom) < margin:
            if is_stuck or step >= top or step <= bottom:
                step = top - margin if abs(step - top) < abs(step - bottom) else bottom + margin
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        new = tried(step)
        n_evals += 1
        if too_high(new) or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        is_done = abs(new.slope) <= -limits.curvature * slope
        if not is_done and new.slope * (bracket[high].length - bracket[low].length) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = new
        if is_done:
            break
    return bracket[low], n_evals
