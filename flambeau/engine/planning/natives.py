"""Native statements in a plan: what their makers say, ready to be written for every call.

Keeps     a maker is asked once for a statement under the same switches; operands are numbered reads
          first, then writes, then the workspace.
Touches   base.config, devices.cpu (features, jit, steps), statement.
Not here  makers (devices.cpu), where a program's words go (plan.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features, jit
from flambeau.devices.cpu.steps import At, NativeStep
from flambeau.engine.statement import Memory, Native


class NativeLaunch:
    """A kernel of a native statement and what its words are.

    words     static words, 0 where a patch follows
    pointers  (position, operand, bytes)
    errors    positions of the error word's address
    """

    __slots__ = (
        "chunk_units", "errors", "n_units", "name", "pointers", "scratch_bytes", "text", "words",
    )  # fmt: skip

    def __init__(self, step: NativeStep, memories: Sequence[Memory], n_reads: int) -> None:
        self.name = step.name
        self.text = step.text
        self.n_units = step.n_units
        self.chunk_units = step.chunk_units
        self.scratch_bytes = step.scratch_bytes
        self.words: list[int] = []
        self.pointers: list[tuple[int, int, int]] = []
        self.errors: list[int] = []
        for position, word in enumerate(step.arguments):
            if type(word) is not At:
                self.words.append(word)  # type: ignore[arg-type]
                continue
            self.words.append(0)
            if word.what == "error":
                self.errors.append(position)
            elif word.what == "workspace":
                self.pointers.append((position, len(memories), word.n_bytes))
            else:
                number = word.number if word.what == "read" else n_reads + word.number
                memory = memories[number]
                n_bytes = memory.offset * memory.dtype.itemsize + word.n_bytes
                self.pointers.append((position, number, n_bytes))


class NativeLaunches:
    """Kernels of a native statement in order, those without work left out."""

    __slots__ = ("kernels", "texts", "workspace_bytes")

    def __init__(self, made: Any, native: Native) -> None:
        self.workspace_bytes: int = made.workspace_bytes
        self.texts: dict[str, jit.Text] = {step.name: step.text for step in made.steps}
        memories = native.reads + native.writes
        n_reads = len(native.reads)
        self.kernels = [
            NativeLaunch(step, memories, n_reads) for step in made.steps if step.n_units
        ]


def launches_of(native: Native) -> NativeLaunches:
    """What the statement's maker says under the present switches."""
    switches = (features.vector_bits(), CONFIG.threads, CONFIG.codegen_level)
    made: NativeLaunches | None = native.made.get(switches)
    if made is None:
        said = native.maker(native.reads, native.writes, **native.attributes)
        made = native.made[switches] = NativeLaunches(said, native)
    return made


def operands_of(native: Native, references: Sequence[int], workspace: int) -> list[int]:
    """Slots of the operands, in the order in which pointers number them."""
    slots = [references[memory.reference] for memory in native.reads]
    slots += [references[memory.reference] for memory in native.writes]
    slots.append(workspace)
    return slots
