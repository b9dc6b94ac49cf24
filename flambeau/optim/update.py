"""One record for a whole step: an update operator over lists of tensors.

Keeps     the signature of a step is remembered by its layouts and its settings; numbers that
          change from step to step (learning rate, corrections) are run-time numbers.
Touches   tensor.binding and inplace, engine.stream, gradients.
Not here  the operators (ops.update), the optimizers."""

from __future__ import annotations

from typing import Any

from flambeau.engine import callsite, external, stream
from flambeau.engine.signature import Signature
from flambeau.gradients import saved
from flambeau.tensor.binding import Binding, binding, new_table, remember
from flambeau.tensor.native import library
from flambeau.tensor.number_rules import is_special


class ListUpdate:
    """The callable of an update operator: lists of tensors first, then numbers and settings."""

    def __init__(self, name: str) -> None:
        self.binding: Binding = binding(name)
        kinds = [parameter.kind for parameter in self.binding.parameters]
        self.n_lists = kinds.count("Tensors")
        self.rest = self.binding.parameters[self.n_lists :]
        self.signatures = new_table()

    def __call__(self, lists: tuple[list[Any], ...], **named: Any) -> None:
        """Record the update; tensors of the lists named in the operator's `updates` are written."""
        key: list[Any] = [tuple([each._layout for each in one]) for one in lists]
        numbers = []
        values = []
        for parameter in self.rest:
            value = named.get(parameter.name, parameter.default)
            values.append(value)
            if parameter.kind == "attribute":
                key.append(value)
            elif is_special(value, parameter.specials):
                key.append((type(value), value))
            else:
                key.append(type(value))
                numbers.append(value)
        found = self.signatures.get(tuple(key))
        if found is None:
            found = self._learnt(lists, values)
            remember(self.signatures, tuple(key), found)
        self._record(found, [each for one in lists for each in one], tuple(numbers))

    def _learnt(self, lists: tuple[list[Any], ...], values: list[Any]) -> Signature:
        bound = self.binding
        call = bound.taken_apart([*map(tuple, lists), *values])
        return bound.signature(call)

    def _record(self, signature: Signature, tensors: list[Any], numbers: tuple[Any, ...]) -> None:
        site = callsite.site()
        current = stream.LOCAL.stream
        targets = [tensors[position] for position in signature.targets]
        shared = [target for target in targets if target._storage.external is not None]
        if shared:
            external.write_at_once(current, signature, tensors, numbers, site, shared)
        else:
            stream.record(current, signature, tensors, numbers, site)
        native = library.ready()
        if native is not None:
            native.bumps(tuple(targets), site, saved.bump)
        else:
            for target in targets:
                saved.bump(target, site)


UPDATES: dict[str, ListUpdate] = {}


def update(name: str) -> ListUpdate:
    """The callable of an update operator, made once."""
    found = UPDATES.get(name)
    if found is None:
        found = UPDATES[name] = ListUpdate(name)
    return found
