"""gradcheck and gradgradcheck: gradients against central differences.

Keeps     torch's tolerances, defaults, class of error and first line.
Touches   gradients (entry, members, modes).
Not here  the operator suite, which has checks of its own (tests/test_every_operator.py)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.functional import along
from flambeau.gradients.entry import grad
from flambeau.gradients.members import requires_grad, set_requires_grad
from flambeau.gradients.modes import enable_grad, set_mode
from flambeau.gradients.runtime import RUNTIME

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Analytical and numerical gradients differ."""


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    found = func(*inputs)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def _differentiable(values: tuple[Any, ...]) -> list[int]:
    """Places of the tensors that require gradients."""
    return [
        place
        for place, each in enumerate(values)
        if isinstance(each, RUNTIME.tensor) and requires_grad(each)
    ]


def _reals(tensor: Any) -> Any:
    """The elements in a row; of complex ones the parts, one after the other."""
    flat = tensor.detach()
    if flat._layout.dtype.is_complex:
        flat = RUNTIME.functions.view_as_real(flat.resolve_conj())
    return flat.reshape(-1)


def _flat_values(tensor: Any) -> list[float]:
    values: list[float] = _reals(tensor).tolist()
    return values


def _n_reals(layout: Any) -> int:
    count: int = layout.n_elements
    return 2 * count if layout.dtype.is_complex else count


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], position: int, eps: float, n_outputs: int,
    wanted: list[int],
) -> list[list[list[float]]]:  # fmt: skip
    """Per output: rows over the input's elements of central differences."""
    tensor = inputs[position]
    blocks: list[list[list[float]]] = [[] for _ in range(n_outputs)]
    before = set_mode(False)
    try:
        flat = tensor.detach().clone().reshape(-1)
        for index in range(_n_reals(tensor._layout)):
            sides = []
            for step in (eps, -eps):
                moved = flat.clone()
                parts = _reals(moved)
                parts[index] = parts[index] + step
                changed = moved.reshape(tensor._layout.shape)
                set_requires_grad(changed, True)
                arguments = tuple([changed if each is tensor else each for each in inputs])
                with enable_grad():
                    outputs = _outputs(func, arguments)
                sides.append([_flat_values(outputs[n]) for n in wanted])
            for block, up, down in zip(blocks, *sides, strict=True):
                block.append([(a - b) / (2 * eps) for a, b in zip(up, down, strict=True)])
    finally:
        set_mode(before)
    return blocks


def _analytical(output: Any, inputs: list[Any]) -> list[list[list[float]]]:
    """Per input: rows over the input's elements of the output's gradients."""
    layout = output._layout
    t = RUNTIME.functions
    columns: list[list[list[float]]] = [[] for _ in inputs]
    for index in range(_n_reals(layout)):
        cotangent = t.zeros((layout.n_elements,), dtype=layout.dtype)
        _reals(cotangent)[index] = 1
        found = grad(output, inputs, cotangent.reshape(layout.shape), retain_graph=True,
                     allow_unused=True)  # fmt: skip
        for column, value, each in zip(columns, found, inputs, strict=True):
            n_elements = _n_reals(each._layout)
            column.append([0.0] * n_elements if value is None else _flat_values(value))
    return [
        [list(row) for row in zip(*column, strict=True)]
        if column else [[] for _ in range(_n_reals(each._layout))]
        for column, each in zip(columns, inputs, strict=True)
    ]  # fmt: skip


def _forward(output: Any, inputs: list[Any]) -> list[list[list[float]]]:
    """The same by derivatives along each element of the inputs."""
    t = RUNTIME.functions
    blocks = []
    for tensor in inputs:
        rows = []
        for index in range(_n_reals(tensor._layout)):
            direction = t.zeros_like(tensor).detach()
            _reals(direction)[index] = 1
            (tangent,) = along((output,), (tensor,), (direction,), False)
            rows.append(_flat_values(tangent))
        blocks.append(rows)
    return blocks


def _close(first: list[list[float]], second: list[list[float]], atol: float, rtol: float) -> bool:
    return all(
        abs(a - n) <= atol + rtol * abs(n) or (a != a and n != n)
        for row_a, row_n in zip(first, second, strict=True)
        for a, n in zip(row_a, row_n, strict=True)
    )


def _check_inputs(inputs: tuple[Any, ...]) -> list[int]:
    positions = _differentiable(inputs)
    for n in positions:
        layout = inputs[n]._layout
        if any(
            step == 0 and size > 1 for step, size in zip(layout.strides, layout.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {n}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )
        if inputs[n]._layout.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{n} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
    if not positions:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of "
            "them have requires_grad=True."
        )
    return positions


def _compare(
    func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float,
    nondet_tol: float, ways: list[Callable[..., Any]],
) -> None:  # fmt: skip
    positions = _check_inputs(inputs)
    with enable_grad():
        outputs = _outputs(func, inputs)
    wanted = _differentiable(outputs)
    if not wanted:
        _check_constant(func, inputs, positions, eps, outputs)
        return
    differentiated = [inputs[n] for n in positions]
    analytical = [[way(outputs[n], differentiated) for n in wanted] for way in ways]
    again = [[way(outputs[n], differentiated) for n in wanted] for way in ways]
    _check_repeated(analytical, again, nondet_tol)
    for place, position in enumerate(positions):
        numerical = _numerical(func, inputs, position, eps, len(wanted), wanted)
        for block, n in enumerate(wanted):
            for found in analytical:
                if not _close(found[block][place], numerical[block], atol, rtol):
                    raise GradcheckError(
                        f"Jacobian mismatch for output {n} with respect to input {position},\n"
                        f"numerical:{_table(numerical[block])}\n"
                        f"analytical:{_table(found[block][place])}\n"
                    )


def _check_repeated(first: Any, again: Any, nondet_tol: float) -> None:
    """Two backward passes over one graph have to agree."""
    if isinstance(first, list):
        for one, other in zip(first, again, strict=True):
            _check_repeated(one, other, nondet_tol)
    elif abs(first - again) > nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches numerical "
            f"gradient.The tolerance for nondeterminism was {nondet_tol}."
        )


def _check_constant(
    func: Callable[..., Any], inputs: tuple[Any, ...], positions: list[int], eps: float,
    outputs: tuple[Any, ...],
) -> None:  # fmt: skip
    """Outputs that ask for no gradient must not depend on the inputs."""
    wanted = [n for n, each in enumerate(outputs) if each._layout.dtype.category >= 2]
    for position in positions:
        for block in _numerical(func, inputs, position, eps, len(wanted), wanted):
            if any(value for row in block for value in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _table(rows: list[list[float]]) -> str:
    return "[" + ",\n ".join(str([float(f"{value:.6g}") for value in row]) for row in rows) + "]"


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients of func agree with central differences, element by element.

    fast_mode and the checks of details (undefined gradients, dtypes) are accepted; every element is
    always compared, and batched gradients are rows one after the other. Gradients that differ by
    more than nondet_tol from one backward pass to the next are refused.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    ways = [_analytical] * check_backward_ad + [_forward] * check_forward_ad
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _compare(func, values, eps, atol, rtol, nondet_tol, ways)
    except RuntimeError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradients themselves, at given or random cotangents."""
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    positions = _differentiable(values)
    if grad_outputs is None:
        with enable_grad():
            outputs = _outputs(func, values)
        cotangents = tuple([_spread(outputs[n]) for n in _differentiable(outputs)])
    else:
        cotangents = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) \
            else (grad_outputs,)  # fmt: skip
    n_inputs = len(values)

    def gradients(*arguments: Any) -> Any:
        inner, outer = arguments[:n_inputs], arguments[n_inputs:]
        outputs = _outputs(func, inner)
        found = grad(
            [outputs[n] for n in _differentiable(outputs)], [inner[n] for n in positions],
            list(outer), create_graph=True, allow_unused=True,
        )  # fmt: skip
        return tuple([each for each in found if each is not None])

    return gradcheck(
        gradients, (*values, *cotangents), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
    )  # fmt: skip


def _spread(output: Any) -> Any:
    """A fixed cotangent without symmetries, from -1 to 1."""
    layout = output._layout
    t = RUNTIME.functions
    count = layout.n_elements
    n_reals = _n_reals(layout)
    places = t.arange(n_reals).to(layout.dtype.to_real())
    made = (places * 0.6180339887498949) % 1.0 * 2 - 1
    if layout.dtype.is_complex:
        made = t.view_as_complex(made.reshape(count, 2))
    made = made.reshape(layout.shape).detach()
    set_requires_grad(made, True)
    return made
