"""jacrev, jacfwd, hessian: all derivatives of a function, row by row or column by column.

Keeps     a block for each pair of output and input, its shape the output's, then the input's.
Touches   derivatives.py.
Not here  torch.autograd.functional's forms of the same (autograd.functional)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.autograd.grad_mode import enable_grad
from flambeau.base.trees import tree_flatten, tree_map, tree_unflatten
from flambeau.func.derivatives import along, placed, split_aux
from flambeau.tensor import functions as t


def _unit_vectors(like: Any) -> Any:
    """One tensor after the other of the same shape with a single 1 in it."""
    for number in range(like.numel()):
        vector = t.zeros_like(like).detach().reshape(-1)
        vector[number] = 1
        yield vector.reshape(like.shape)


def _rows(places: Any, outputs: Any, number: int) -> list[Any]:
    """The derivatives of one output, a block for each place."""
    output = outputs[number]
    found = [places.derivatives([output], [vector]) for vector in _unit_vectors(output)]
    return [
        t.stack([row[at] for row in found]).reshape((*output.shape, *place.shape))
        if found
        else t.zeros_like(place).new_zeros((*output.shape, *place.shape))
        for at, place in enumerate(places.inner)
    ]


def _columns(places: Any, outputs: Any) -> list[list[Any]]:
    """The derivatives of all outputs: for each, a block for each place."""
    blocks: list[list[Any]] = [[] for _ in outputs]
    for at, place in enumerate(places.inner):
        found = []
        for vector in _unit_vectors(place):
            directions = [t.zeros_like(each).detach() for each in places.inner]
            directions[at] = vector
            found.append(along(places, outputs, directions))
        for number, output in enumerate(outputs):
            shape = (*output.shape, *place.shape)
            columns = [column[number] for column in found]
            made = t.stack(columns, -1).reshape(shape) if columns else output.new_zeros(shape)
            blocks[number].append(made)
    return blocks


def _jacobian(
    func: Callable[..., Any], argnums: Any, has_aux: bool, name: str, forward: bool
) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            places, spec, replaced = placed(args, argnums, name)
            output, aux = split_aux(func(*replaced, **kwargs), has_aux, f"{name}(f)(*args)")
            outputs, out_spec = tree_flatten(output)
            if forward:
                blocks = _columns(places, outputs)
            else:
                blocks = [_rows(places, outputs, number) for number in range(len(outputs))]
        made = tree_unflatten(
            [tree_unflatten([places.outside(b) for b in row], spec) for row in blocks], out_spec
        )
        return (made, tree_map(places.outside, aux)) if has_aux else made

    return wrapper


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian, a reverse pass for each element of the output."""
    return _jacobian(func, argnums, has_aux, "jacrev", forward=False)


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian, a product for each element of the input.

    >>> import flambeau as torch
    >>> jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _jacobian(func, argnums, has_aux, "jacfwd", forward=True)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives."""
    return jacrev(jacrev(func, argnums), argnums)
