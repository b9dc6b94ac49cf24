"""A module called with tensors other than its own in their places.

Keeps     the module is as it was before when the call ends, however it ends.
Touches   the module's tables of parameters and buffers.
Not here  transforms of functions (func)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["functional_call"]


def _table(module: Any, name: str) -> tuple[dict[str, Any], str] | None:
    """Where the tensor of a dotted name is kept, and under which name there."""
    *path, last = name.split(".")
    for part in path:
        module = module._modules.get(part) if hasattr(module, "_modules") else None
        if module is None:
            return None
    for table in (module._parameters, module._buffers):
        if last in table:
            return table, last
    return None


def _with_ties(module: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The given tensors under every name that the module's own have."""
    names: dict[int, list[str]] = {}
    members = (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    )
    for name, tensor in members:
        names.setdefault(id(tensor), []).append(name)
    found = dict(given)
    for tied in names.values():
        values = [given[name] for name in tied if name in given]
        if any(value is not values[0] for value in values[1:]):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(set(tied) & given.keys())}, "
                "which are tied. Consider using tie_weights=False"
            )
        if values:
            found.update(dict.fromkeys(tied, values[0]))
    return found


@contextmanager
def replaced(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors in the places of its own."""
    if tie_weights:
        given = _with_ties(module, given)
    places = {name: _table(module, name) for name in given}
    if strict:
        own = {name for name, _ in (*module.named_parameters(remove_duplicate=False),
                                    *module.named_buffers(remove_duplicate=False))}  # fmt: skip
        missing = sorted(own - given.keys())
        unexpected = sorted(name for name, place in places.items() if place is None)
        wrong = []
        if unexpected:
            wrong.append("Unexpected key(s): " + ", ".join(unexpected) + ".")
        if missing:
            wrong.append("Missing key(s): " + ", ".join(missing) + ".")
        if wrong:
            name = type(module).__name__
            raise RuntimeError(f"Error(s) in reparametrizing for {name}:\n\t" + "\n\t".join(wrong))
    before = []
    try:
        for name, place in places.items():
            if place is not None:
                table, last = place
                before.append((table, last, table[last]))
                table[last] = given[name]
        yield
    finally:
        for table, last, value in reversed(before):
            table[last] = value


def functional_call(
    module: Any, parameters_and_buffers: Any, args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """module(*args, **kwargs) with other parameters and buffers, by dotted name.

    >>> import flambeau as torch
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> functional_call(layer, {"weight": torch.ones(1, 2)}, torch.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if args is None:
        args = ()
    if not isinstance(args, tuple):
        args = (args,)
    with replaced(module, dict(parameters_and_buffers), tie_weights, strict):
        return module(*args, **(kwargs or {}))
