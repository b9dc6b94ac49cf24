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


def _batch_size(leaves: list[Any], dims: list[Any], call: str) -> int:
    sizes = set()
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of "
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
    randomness   "same": every sample draws the same numbers; "different": each draws its own;
                 "error": random numbers are refused

    >>> import flambeau as torch
    >>> vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple, list)):
            raise ValueError(
                f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(in_dims)}."
            )
        if isinstance(in_dims, int):
            dims = [in_dims] * len(leaves)
        else:
            dims = _spread(tuple(in_dims), args, "in_dims")
        count = _batch_size(leaves, dims, call)
        parts = [
            None if dim is None else t.unbind(leaf, dim)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        state = _random_state()
        rows = []
        for number in range(count):
            if randomness == "same":
                _set_random_state(state)
            sample = [
                leaf if part is None else part[number]
                for leaf, part in zip(leaves, parts, strict=True)
            ]
            rows.append(func(*tree_unflatten(sample, spec), **kwargs))
        if randomness == "error":
            _refuse_draws(state)
        return _joined(rows, out_dims, name)

    return wrapper


def _random_state() -> bytes:
    from flambeau.random import default_generator

    return default_generator.state_bytes()


def _set_random_state(state: bytes) -> None:
    from flambeau.random import default_generator

    default_generator.set_state_bytes(state)


def _refuse_draws(before: bytes) -> None:
    """Raise where the function drew random numbers, and take the draws back."""
    if before != _random_state():
        _set_random_state(before)
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )


def _joined(rows: list[Any], out_dims: Any, name: str) -> Any:
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
                f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                f"{type(column[0])}. Did you mean to set out_dims= to None for output?"
            )
        made.append(column[0] if dim is None else t.stack(column, dim))
    return tree_unflatten(made, spec)


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


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let all batch norms of a module normalise by the batch at hand, without running statistics,
    which functions of one sample must not write."""
    from flambeau.nn.modules.batchnorm import _BatchNorm

    for each in root.modules():
        if isinstance(each, _BatchNorm) and each.track_running_stats:
            each.running_mean = each.running_var = each.num_batches_tracked = None
            each.track_running_stats = False
    return root
