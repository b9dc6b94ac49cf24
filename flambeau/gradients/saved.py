"""Values kept for the backward pass, their versions, and the hooks that pack them.

Keeps     a saved value holds storage, layout, offset and history, never the Tensor: its .grad
          and whatever hangs on the object stay out of the graph, so no cycle can form. A value
          written since it was saved is an error that names both lines.
Touches   runtime for the Tensor class; engine.callsite to describe lines.
Not here  which values an operator saves (plan.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.engine.stream import current
from flambeau.engine.view import UNPLACED
from flambeau.gradients.runtime import RUNTIME, users

# A saved tensor: (storage, layout, offset, history, counter, version); history OWN: the value is
# a result of the node that saves it.
Entry = tuple[Any, Any, int, Any, Any, int]


class _Own:
    """Stands for the saving node itself where naming it would make a cycle."""

    def __repr__(self) -> str:
        return "OWN"


OWN: Final = _Own()

FREED: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling backward."
)
NO_INFERENCE: Final = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
    "inference mode in computation tracked by autograd. To work around this, you can make a clone "
    "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)
INFERENCE_WRITE: Final = (
    "Inplace update to inference tensor outside InferenceMode is not allowed."
    "You can make a clone to get a normal tensor before doing inplace update."
    "See https://github.com/pytorch/rfcs/pull/17 for more details."
)


class VersionCounter:
    """Counts in-place writes of one family of views that does not share its storage's counter."""

    __slots__ = ("version", "write_site")

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.write_site: Any = None


class _InferenceCounter:
    """Counter of tensors made in inference mode: there is none to read, so saving them fails."""

    write_site = None

    @property
    def version(self) -> int:
        """Raises: what was made in inference mode cannot be saved."""
        raise RuntimeError(NO_INFERENCE)


INFERENCE: Final = _InferenceCounter()


def counter_of(tensor: Any) -> Any:
    """What counts the writes of this tensor's family."""
    versions = tensor._versions
    return tensor._storage if versions is None else versions


def version_of(tensor: Any) -> int:
    """`Tensor._version`."""
    counter = counter_of(tensor)
    if counter is INFERENCE:
        raise RuntimeError("Inference tensors do not track version counter.")
    return int(counter.version)


def bump(tensor: Any, site: Any = None) -> None:
    """Count an in-place write of the tensor, made at `site`.

    What was made in inference mode has no count, so that it may be written there alone; torch too
    finds that out when it counts, after the write.
    """
    versions = tensor._versions
    counter = tensor._storage if versions is None else versions
    if counter is not INFERENCE:
        counter.version += 1
        counter.write_site = site
    elif not current().inference:
        raise RuntimeError(INFERENCE_WRITE)


# ---------------------------------------------------------------- packing and unpacking


def entry(tensor: Any, history: Any) -> Entry:
    """A tensor as a graph keeps it."""
    versions = tensor._versions
    counter = tensor._storage if versions is None else versions
    return (
        tensor._storage, tensor._layout, tensor._offset, history, counter, counter.version
    )  # fmt: skip


def unpack(saved: Entry, own: Any) -> Any:
    """The saved tensor as it was; `own` is its history where that is the saving node."""
    storage, layout, offset, history, counter, version = saved
    if counter.version != version:
        raise modified(saved, own)
    tensor = RUNTIME.new(RUNTIME.tensor)
    tensor._storage = storage
    tensor._layout = layout
    tensor._offset = offset
    tensor._place = storage if offset == 0 and layout is storage.layout else UNPLACED
    tensor._base = None
    tensor._autograd = own if history is OWN else history
    if counter is not storage:
        tensor._versions = counter
    return tensor


def modified(saved: Entry, own: Any) -> RuntimeError:
    """The error for a value written between being saved and being needed."""
    _, layout, _, history, counter, version = saved
    producer = own if history is OWN else history
    origin = ""
    if producer is not None and not hasattr(producer, "variable"):  # a leaf was not computed
        forward = producer.node_name().removesuffix("0").removesuffix("Backward")
        origin = f", which is output {producer.output_index} of {forward},"
    name = RUNTIME.type_name(layout)
    saved_at = RUNTIME.describe(getattr(own_node(own), "site", None))
    written_at = RUNTIME.describe(getattr(counter, "write_site", None))
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{name} {list(layout.shape)}]{origin} is at version {counter.version}; "
        f"expected version {version} instead. Hint: enable anomaly detection to find the operation "
        "that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )
    given = "; ".join(
        f"{label} at {where}"
        for label, where in (("saved", saved_at), ("last written", written_at))
        if where
    )
    return RuntimeError(
        helped(
            message, given=given or None,
            fix="write to a copy (x = x + 1, or x.clone().add_(1)), or write before it is used",
        )
    )  # fmt: skip


def own_node(history: Any) -> Any:
    """The node behind a history: itself, or an output's node."""
    return getattr(history, "node", history)


# ---------------------------------------------------------------- hooks around saving

# Non-empty while any thread has hooks, a disabling message or anomaly detection: one global
# look-up keeps the common path free of thread-locals. Entries are the active contexts.
SPECIAL: Final[list[object]] = []


class _Local(threading.local):
    def __init__(self) -> None:
        self.hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.disabled: str | None = None


_LOCAL = _Local()


class HookedValue:
    """A saved value that went through pack; unpacking calls the partner."""

    __slots__ = ("history", "packed", "unpack_hook")

    def __init__(self, packed: Any, unpack_hook: Callable[[Any], Any], history: Any) -> None:
        self.packed = packed
        self.unpack_hook = unpack_hook
        self.history = history

    def unpack(self, own: Any) -> Any:
        """The value from the unpack hook, with the history of what was saved."""
        value = users(self.unpack_hook, self.packed)
        if not isinstance(value, RUNTIME.tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(value).__name__}"
            )
        if value._autograd is self.history:
            return value
        twin = RUNTIME.alias(value)
        twin._autograd = own if self.history is OWN else self.history
        return twin


def save(tensor: Any, history: Any) -> Entry | HookedValue:
    """A tensor as a graph keeps it, through this thread's hooks where there are some."""
    hooks = _LOCAL.hooks
    if not SPECIAL or not hooks:
        return entry(tensor, history)
    pack_hook, unpack_hook = hooks[-1]
    recorder = current()
    before = recorder.grad_enabled
    counter = counter_of(tensor)
    version = counter.version
    try:
        recorder.grad_enabled = False
        if (history is OWN and tensor._autograd is not None) or tensor._autograd is history:
            packed = pack_hook(tensor)
        else:
            twin = RUNTIME.alias(tensor)
            twin._autograd = None if history is OWN else history
            packed = pack_hook(twin)
    finally:
        recorder.grad_enabled = before  # no call, nothing comes between
    if counter.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to "
            "unexpected side-effects. Please open an issue if you need to perform in-place "
            "operations on the input to a pack hook."
        )
    return HookedValue(packed, unpack_hook, history)


def value_of(saved: Any, own: Any) -> Any:
    """Whatever was saved: a tensor, a number, None, or a list of them."""
    if saved.__class__ is tuple:
        return unpack(saved, own)
    if saved.__class__ is HookedValue:
        return saved.unpack(own)
    if saved.__class__ is list:
        return tuple([value_of(each, own) for each in saved])
    return saved


class saved_tensors_hooks:  # noqa: N801 - torch's name
    """Pack values when they are saved and unpack them when the backward pass needs them.

    pack_hook(tensor) may return anything; unpack_hook(packed) returns a tensor of equal content.
    Holds on this thread for values saved inside the block; the innermost pair wins.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _LOCAL.disabled is not None:
            raise RuntimeError(_LOCAL.disabled)
        _LOCAL.hooks.append((self.pack_hook, self.unpack_hook))
        SPECIAL.append(self)

    def __exit__(self, *_: object) -> None:
        _LOCAL.hooks.pop()
        SPECIAL.remove(self)


class disable_saved_tensors_hooks:  # noqa: N801 - torch's name
    """Refuse saved_tensors_hooks inside the block with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message
        self.before: str | None = None

    def __enter__(self) -> None:
        if _LOCAL.hooks:
            raise RuntimeError(self.message)
        self.before = _LOCAL.disabled
        _LOCAL.disabled = self.message

    def __exit__(self, *_: object) -> None:
        _LOCAL.disabled = self.before
