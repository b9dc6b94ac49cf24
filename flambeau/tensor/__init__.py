"""Tensor and what is made from operators for it; importing this wires the rooms together."""

from flambeau.engine import callsite, external
from flambeau.gradients.runtime import RUNTIME
from flambeau.tensor import functions, methods
from flambeau.tensor.tensor import Size, Tensor

__all__ = ["Size", "Tensor", "functions"]


def _snapshot(view: Tensor) -> Tensor:
    """A copy of what a view shows now, made at once on a stream of its own."""
    from flambeau.engine import run, stream
    from flambeau.tensor.binding import binding
    from flambeau.tensor.tensor import new_tensor

    apart = stream.Stream()
    apart.segment.direct = True
    bound = binding("contiguous_copy")
    plain = new_tensor(view._storage, view._layout)
    plain._offset = view._offset
    call = bound.taken_apart([plain])
    signature = bound.signature(call)
    (storage,) = stream.record(apart, signature, [plain], (), None)
    run.flush(apart.segment, "memory shared with Python outside was read")
    made = new_tensor(storage, signature.fresh_outputs[0])
    return made


external.install(_snapshot)
RUNTIME.install(Tensor, functions, callsite.describe)
RUNTIME.new = object.__new__
methods.install()
