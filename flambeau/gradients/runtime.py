"""What gradients need from the rooms above them, handed in when tensor/ is imported.

Keeps     gradients import nothing from above; one object holds the hand-ins.
Touches   base for names of dtypes; the stream, which says whether calls may be taken over.
Not here  the graph itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.engine.stream import LOCAL
from flambeau.engine.view import UNPLACED


def _nowhere(site: Any) -> str:
    return ""


def _no_walk() -> None:
    return None


def _no_program(plan: Any) -> int:
    return 0


def _segment_references(storage: Any) -> int:
    """An open segment lists each storage it touches once."""
    return 0 if storage.segment is None else 1


class _Nobody:
    """Stands for what takes calls over in a thread until tensor/ is there."""

    arguments = modes = False
    outer: tuple[bool, bool] | None = None


class Runtime:
    """The Tensor class, the module `t` of recorded functions, and two engine services."""

    tensor: type[Any]
    functions: Any
    new: Callable[..., Any] = staticmethod(object.__new__)  # Tensor.__new__ is the user's
    # From modes, which cannot be imported by saved and members since it imports saved.
    is_inference_mode: Callable[[], bool]
    # Records a fresh tensor by the name of an operator and its layout.
    fill: Callable[[str, Any], Any]

    # What may take calls over in this thread by a __torch_function__: nothing during a pass, but
    # in the user's code; `outer` is what might before the pass, None where there is none.
    takers: Any = _Nobody()

    def __init__(self) -> None:
        self.has_sparse = False  # whether there was ever a sparse tensor: until then nobody asks
        # Native code that finds a pass's nodes and that runs the ordinary ones, or None; asked for
        # once a pass. And what it wants of a plan: an address, 0 where the plan is not ordinary.
        self.native_walk: Callable[[], tuple[Callable[..., None], Callable[..., bool]] | None] = (
            _no_walk
        )
        self.native_program: Callable[[Any], int] = _no_program
        self.describe: Callable[[Any], str] = _nowhere
        self.engine_references: Callable[[Any], int] = _segment_references

    def install(
        self,
        tensor: type[Any],
        functions: Any,
        describe: Callable[[Any], str] | None = None,
        engine_references: Callable[[Any], int] | None = None,
    ) -> None:
        """Called once by tensor/.

        describe           turns a call site into 'file:line in function'
        engine_references  how many references the engine itself holds to a storage, so that a
                           gradient nobody else holds can become .grad without a copy
        """
        from flambeau.gradients import modes

        self.tensor = tensor
        self.functions = functions
        self.is_inference_mode = modes.is_inference_mode_enabled
        if engine_references is not None:
            self.engine_references = engine_references
        if describe is not None:
            self.describe = lambda site: "" if site is None else describe(site)

    def ones(self, layout: Any) -> Any:
        """A fresh tensor of ones: what a pass starts with."""
        if layout.is_contiguous:
            return self.fill("ones", layout)
        return self.functions.ones(layout.shape, dtype=layout.dtype, device=layout.device)

    def alias(self, tensor: Any) -> Any:
        """Another Tensor on the same storage, layout and versions, without history."""
        twin = self.new(self.tensor)
        twin._storage = tensor._storage
        twin._layout = tensor._layout
        twin._offset = tensor._offset
        twin._place = tensor._storage if tensor._place is tensor._storage else UNPLACED
        twin._base = None
        twin._autograd = None
        if tensor._versions is not None:
            twin._versions = tensor._versions
        return twin

    def type_name(self, layout: Any) -> str:
        """torch's old name of a layout's tensor type: torch.FloatTensor."""
        place = "" if layout.device.type == "cpu" else f"{layout.device.type}."
        return f"torch.{place}{SCALAR_TYPE_NAMES[layout.dtype.name]}Tensor"


RUNTIME: Final = Runtime()


def users(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the user's gives within a backward pass: what might take calls over
    before the pass may do so here."""
    takers, recorder = RUNTIME.takers, LOCAL.stream
    if takers.outer is None:
        return function(*arguments)
    arguments_before, modes_before = takers.arguments, takers.modes
    takers.arguments, takers.modes = takers.outer
    recorder.asks = takers.arguments
    try:
        return function(*arguments)
    finally:
        takers.arguments, takers.modes = arguments_before, modes_before
        recorder.asks = arguments_before
