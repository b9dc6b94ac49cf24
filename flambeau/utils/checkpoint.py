"""checkpoint: values between a function's input and output are computed again, not saved.

Keeps     the second run draws the same random numbers; what it saves must have the shapes of the
          first, or CheckpointError says which does not.
Touches   gradients (saved-tensor hooks), random.
Not here  what is saved (gradients.saved)."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from flambeau import cuda
from flambeau.amp.autocast_mode import autocast
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.base.missing import module_getattr
from flambeau.gradients.autocast import get_autocast_dtype, is_autocast_enabled
from flambeau.gradients.backward import goes_to_leaves
from flambeau.gradients.entry import backward
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.saved import saved_tensors_hooks
from flambeau.random import get_rng_state, set_rng_state
from flambeau.tensor import Tensor

__all__ = [
    "CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential",
    "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """The second run did not save what the first did."""


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts for both runs that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Devices of tensors that are not on the CPU, and their generators' states: there are none.

    >>> import flambeau as torch
    >>> get_device_states(torch.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Continue the generators of devices from their states: what get_device_states found."""
    for _, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors as leaves that ask for gradients as they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each
        for each in inputs
    )


class _Surroundings:
    """Random state and autocast at the first run, for the second."""

    def __init__(self, preserve: bool) -> None:
        self.random = get_rng_state() if preserve else None
        self.autocast = (is_autocast_enabled("cpu"), get_autocast_dtype("cpu"))

    @contextlib.contextmanager
    def again(self) -> Any:
        """As it was then."""
        now = get_rng_state() if self.random is not None else None
        if self.random is not None:
            set_rng_state(self.random)
        enabled, dtype = self.autocast
        try:
            with autocast("cpu", dtype=dtype, enabled=enabled):
                yield
        finally:
            if now is not None:
                set_rng_state(now)


class _Kept:
    """Stands for a saved value: its number, and what it must be like."""

    __slots__ = ("frame", "number")

    def __init__(self, frame: _Frame, number: int) -> None:
        self.frame = frame
        self.number = number


class _Enough(Exception):  # noqa: N818 - no error
    """Ends a second run that has made all that is asked for."""


_EARLY_STOP: Final[list[bool]] = []
_DEBUG: Final[list[bool | None]] = []


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether second runs of calls made inside end once they have made all that is asked for."""
    _EARLY_STOP.append(enable)
    try:
        yield
    finally:
        _EARLY_STOP.pop()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted: an error of a second run says what differs without it."""
    _DEBUG.append(enabled)
    try:
        yield
    finally:
        _DEBUG.pop()


class _Frame:
    """One checkpointed call: what the first run would have saved, by number."""

    def __init__(self, run: Callable[[], Any], context: Any, surroundings: _Surroundings,
                 check: bool, early_stop: bool) -> None:  # fmt: skip
        self.early_stop = early_stop
        self.run = run
        self.context = context
        self.surroundings = surroundings
        self.check = check
        self.facts: list[tuple[Any, Any]] = []
        self.values: dict[int, Any] = {}

    def pack(self, value: Any) -> _Kept:
        """First run: a number in the value's place."""
        self.facts.append((value.shape, value.dtype))
        return _Kept(self, len(self.facts) - 1)

    def unpack(self, kept: _Kept) -> Any:
        """Backward: the value, from the second run."""
        if kept.number not in self.values:
            self._run_again()
        return self.values[kept.number]

    def _run_again(self) -> None:
        found: list[Any] = []

        def keep(value: Any) -> Any:
            found.append(value.detach())
            if self.early_stop and len(found) == len(self.facts):
                raise _Enough
            return value.detach()

        hooks = saved_tensors_hooks(keep, lambda value: value)
        with suppress(_Enough), enable_grad(), self.surroundings.again(), self.context, hooks:
            self.run()
        facts = [(value.shape, value.dtype) for value in found]
        if len(facts) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.facts)}\n"
                f"Number of tensors saved during recomputation: {len(facts)}."
            )
        if self.check and facts != self.facts:
            wrong = [n for n, fact in enumerate(facts) if fact != self.facts[n]]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n"
                + "\n".join(
                    f"tensor at position {n}:\nsaved metadata: {self.facts[n]}\nrecomputed "
                    f"metadata: {facts[n]}"
                    for n in wrong
                )
            )
        self.values = dict(enumerate(found))


class CheckpointFunction(Function):
    """The older form: a node of its own, whose backward runs the function and its graph."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(each, Tensor) else each for each in args]
        ctx.places = [at for at, each in enumerate(args) if isinstance(each, Tensor)]
        ctx.save_for_backward(*[args[at] for at in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        if not goes_to_leaves():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for at, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[at] = tensor
        detached = detach_variable(tuple(inputs))
        with enable_grad(), ctx.surroundings.again():
            outputs = ctx.run_function(*detached)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        kept = [
            (output, grad)
            for output, grad in zip(outputs, args, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not kept:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in kept], [grad for _, grad in kept])
        found = [each.grad if isinstance(each, Tensor) else None for each in detached]
        return (None, None, *found)


_EXPLICIT = (
    "the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, "
    "but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
    "Refer to docs for more details on the differences between the two variants."
)


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """function(*args, **kwargs); what it would save for the backward pass is computed again there.

    use_reentrant        False: by hooks on saved values; True: by a node of its own
    determinism_check    "default" compares shapes and dtypes of both runs, "none" does not
    preserve_rng_state   (keyword) whether the second run draws the first's random numbers

    >>> import flambeau as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda x: x**3, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([12.])
    """
    if use_reentrant is None:
        warnings.warn(f"torch.utils.checkpoint: {_EXPLICIT}", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if not any(isinstance(each, Tensor) and each.requires_grad for each in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None",
                stacklevel=2,
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    frame = _Frame(
        lambda: function(*args, **kwargs), second, _Surroundings(preserve),
        determinism_check == "default", _EARLY_STOP[-1] if _EARLY_STOP else early_stop,
    )  # fmt: skip
    with first, saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Functions in a row, in segments each of which is checkpointed, but for the last."""
    if use_reentrant is None:
        warnings.warn(f"torch.utils.checkpoint.checkpoint_sequential: {_EXPLICIT}", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size) if size else ():
        end = start + size
        input = checkpoint(
            segment(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return segment(end, len(steps))(input)


__getattr__ = module_getattr(__name__)
