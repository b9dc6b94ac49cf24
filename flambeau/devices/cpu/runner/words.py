"""Words of a run's state and of a program, and how the runner's LLVM text reads and writes them.

Keeps     one place for the layout that Python, the native flush and the runner share.
Touches   nothing: text only.
Not here  what the runner does with them (text.py, chunks_text.py)."""

from __future__ import annotations

from typing import Final

# Words of a run's state. First three, RESUME_TAIL and FINISHED zero: a run begins. The native call
# leaves all but the last zero when the program is done, so that a state serves again as it is.
RESUME_STEP: Final = 0
RESUME_UNIT: Final = 1
RESUME_POSITION: Final = 2  # word of the program where the resumed step begins; 0: a new run
THREADS_USED: Final = 3
KERNELS_LAUNCHED: Final = 4
USED_MASK: Final = 5  # a bit for each worker that took a chunk
SLICE_CYCLES: Final = 6  # come back after so many cycles of the time stamp counter; 0: never
PROGRAM: Final = 7  # addresses of the program, of the run's addresses and of its numbers
ADDRESSES: Final = 8
NUMBERS: Final = 9
TEAM_ADDRESS: Final = 10
THREADS_WANTED: Final = 11
CALLER_SCRATCH: Final = 12
FLUSH_DENORMALS: Final = 13
FINISHED: Final = 14  # 1 once the program is done: further calls do nothing
RESUME_TAIL: Final = 15  # units at the end of the resumed step that are done
STATE_WORDS: Final = 16

# Words of a program.
HEADER_WORDS: Final = 4  # number of steps, most arguments of a step, scratch bytes, 0
STEP_WORDS: Final = 6  # kernel, units, units of a chunk, arguments, patches, scratch bytes
PATCH_WORDS: Final = 5  # argument, address or -1, static bytes, number or -1, scale

DONE: Final = 0
AGAIN: Final = 1  # the time slice is over
NEEDS_TEAM: Final = 2  # a step wants THREADS_WANTED threads and the team has another size


def word(name: str, base: str, index: int, kind: str = "i64") -> str:
    """Lines that load %name, and its address %name_at."""
    return f"""  %{name}_at = getelementptr i64, ptr %{base}, i64 {index}
  %{name} = load {kind}, ptr %{name}_at
"""


def store(value: str, base: str, index: int) -> str:
    """Lines that store a value."""
    name = f"{base}_{index}_{value}".replace("%", "")
    return f"""  %{name} = getelementptr i64, ptr %{base}, i64 {index}
  store i64 {value}, ptr %{name}
"""
