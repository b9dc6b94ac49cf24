"""vmap: a function of one sample as a function of a batch; modules' states as a batch.

Keeps     the samples are computed one after the other into one stream, so that everything a
          function may do to a sample it may do here.
Touches   base.trees, tensor.functions.
Not here  derivatives (derivatives.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.base.trees import tree_flatten, tree_unflatten
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t


def _spread(dims: Any, tree: Any, where: str) -> list[Any]:
    """One dim (or None) for each leaf of a tree, from dims nested as the tree is, or less deep."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(tree)[0])
    members = list(tree.values()) if isinstance(tree, dict) else tree
    given = [dims[key] for key in tree] if isinstance(dims, dict) else dims
    if not isinstance(members, (tuple, list)) or len(given) != len(members):
        raise ValueError(
            f"vmap: {where} is not compatible with the structure of the values it is for: "
            f"{dims} for {type(tree).__name__}"
        )
    return [dim for one, member in zip(given, members, strict=True)
            for dim in _spread(one, member, where)]  # fmt: skip


def _batch_size(leaves: list[Any], dims: list[Any]) -> int:
    sizes = set()
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {leaf.dim()} so expected in_dim to satisfy "
                f"-{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        sizes.add(leaf.shape[dim])
    if not sizes:
        raise ValueError("vmap: at least one input must have a dim to map over")
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sorted(sizes)} for the mapped dimension"
        )
    return int(sizes.pop())


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of batches: func of each sample, results along out_dims.

    in_dims      the batch's dim in each argument (None: the same for all samples), nested as the
                 arguments are, or less deep
    randomness   "same": every sample draws the same numbers; else each draws its own

    >>> import flambeau as torch
    >>> vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        if isinstance(in_dims, int):
            dims = [in_dims] * len(leaves)
        else:
            dims = _spread(tuple(in_dims), args, "in_dims")
        count = _batch_size(leaves, dims)
        parts = [
            None if dim is None else t.unbind(leaf, dim)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        state = _random_state() if randomness == "same" else None
        rows = []
        for number in range(count):
            if state is not None:
                _set_random_state(state)
            sample = [
                leaf if part is None else part[number]
                for leaf, part in zip(leaves, parts, strict=True)
            ]
            rows.append(func(*tree_unflatten(sample, spec), **kwargs))
        return _joined(rows, out_dims)

    return wrapper


def _random_state() -> Any:
    from flambeau.random import get_rng_state

    return get_rng_state()


def _set_random_state(state: Any) -> None:
    from flambeau.random import set_rng_state

    set_rng_state(state)


def _joined(rows: list[Any], out_dims: Any) -> Any:
    """Results of all samples as batches."""
    if not rows:
        raise ValueError("vmap: a batch without samples has no results")
    flat = [tree_flatten(row) for row in rows]
    spec = flat[0][1]
    dims = _spread(out_dims, rows[0], "out_dims")
    made = []
    for number, dim in enumerate(dims):
        column = [leaves[number] for leaves, _ in flat]
        if not all(isinstance(each, Tensor) for each in column):
            raise ValueError(
                f"vmap({_described(column[0])}): `func` must only return Tensors, got type "
                f"{type(column[0])}. Did you mean to set out_dims= to None for output?"
            )
        made.append(column[0] if dim is None else t.stack(column, dim))
    return tree_unflatten(made, spec)


def _described(value: Any) -> str:
    return type(value).__name__


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of modules of one class, by name, stacked along a new first dim."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(each.training != models[0].training for each in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(each) is not type(models[0]) for each in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    tables = [dict(each.named_parameters()) for each in models]
    parameters = {}
    for name, first in tables[0].items():
        column = [table[name] for table in tables]
        if all(each.requires_grad for each in column):
            parameters[name] = t.stack([each.detach() for each in column]).requires_grad_()
        elif not any(each.requires_grad for each in column):
            parameters[name] = t.stack(column).requires_grad_(first.requires_grad)
        else:
            raise RuntimeError(
                f"Expected {name} parameter from each model to have the same .requires_grad"
            )
    buffers = {
        name: t.stack([dict(each.named_buffers())[name] for each in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers
