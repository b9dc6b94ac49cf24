"""One fill kernel under construction: its module, its entry and its arguments.

Keeps     the kernels' common form, void (i64* args, i64 begin, i64 end, i8* scratch). A draw is a
          sequence, so a fill is always one unit. One kernel a fill, so that the first draw of a
          program compiles what it needs and no more.
Touches   layout.py, twister.py, writer.py.
Not here  the fills (uniform.py and its neighbours), calling them (random/kernels.py)."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.random.native import layout
from flambeau.random.native.twister import add_twister
from flambeau.random.native.writer import Module, Value


class Fill:
    """The fill being written."""

    def __init__(self, add_functions: tuple[Callable[[Module], None], ...] = ()) -> None:
        self.module = Module()
        add_twister(self.module)
        for add in add_functions:
            add(self.module)
        self.f = f = self.module.function("ENTRY", ["ptr", "i64", "i64", "ptr"], is_internal=False)
        self.args: Value = f.parameters[0]
        self.state = f.load("ptr", self.args, 8 * layout.STATE_ARGUMENT)
        self.target = f.load("ptr", self.args, 8 * layout.TARGET_ARGUMENT)
        self.count = f.load("i64", self.args, 8 * layout.COUNT_ARGUMENT)
        f.call("prepare", self.state)

    @property
    def place(self) -> tuple[Value, Value, Value]:
        """State, target and count: what `stream` runs over."""
        return self.state, self.target, self.count

    @property
    def dtype(self) -> Value:
        return self.f.load("i64", self.args, 8 * layout.DTYPE_ARGUMENT)

    def parameters(self, *kinds: str) -> list[Value]:
        """The fill's own words; a float lies in the low half of its word."""
        first = layout.FIRST_PARAMETER
        return [
            self.f.load(kind, self.args, 8 * (first + number)) for number, kind in enumerate(kinds)
        ]

    def finish(self, name: str) -> str:
        """Text of the kernel under a name; no further line may follow."""
        self.f.give()
        return self.module.text().replace("@ENTRY(", f"@{name}(")
