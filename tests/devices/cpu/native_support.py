"""Small kernels, memory and programs for the tests of the native side.

Keeps     every text is complete by itself; names are made from the content.
Touches   jit, memory.
Not here  kernels that users meet (codegen)."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

from flambeau.devices.cpu import jit, memory, runner
from flambeau.devices.cpu.runner import RunResult

ROOT = Path(__file__).parents[3]
NOTHING = array("q", (0,))

# For units [begin, end): data[i] = data[i] * factor + number. Order and repetition both show.
_MULTIPLY_ADD = """
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %data = load ptr, ptr %args
  %factor_at = getelementptr i64, ptr %args, i64 1
  %factor = load i64, ptr %factor_at
  %number_at = getelementptr i64, ptr %args, i64 2
  %number = load i64, ptr %number_at
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%i_next, %loop]
  %at = getelementptr i64, ptr %data, i64 %i
  %old = load i64, ptr %at
  %scaled = mul i64 %old, %factor
  %new = add i64 %scaled, %number
  store i64 %new, ptr %at
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""

# Each unit spends args[1] cycles, then adds 1 to its element.
_SLOW_COUNT = """
declare i64 @llvm.readcyclecounter()
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %data = load ptr, ptr %args
  %cycles_at = getelementptr i64, ptr %args, i64 1
  %cycles = load i64, ptr %cycles_at
  br label %unit
unit:
  %i = phi i64 [%begin, %entry], [%i_next, %count]
  %start = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %start
  %waiting = icmp ult i64 %spent, %cycles
  br i1 %waiting, label %spin, label %count
count:
  %at = getelementptr i64, ptr %data, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, %end
  br i1 %more, label %unit, label %exit
exit:
  ret void
}}
"""

# Writes the unit's number to the thread's scratch, args[1] words long, and sums it up again into
# the unit's element: wrong if two threads share scratch or if it is too short.
_USE_SCRATCH = """
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %data = load ptr, ptr %args
  %n_at = getelementptr i64, ptr %args, i64 1
  %n = load i64, ptr %n_at
  br label %unit
unit:
  %i = phi i64 [%begin, %entry], [%i_next, %done]
  br label %write
write:
  %j = phi i64 [0, %unit], [%j_next, %write]
  %to = getelementptr i64, ptr %scratch, i64 %j
  store volatile i64 %i, ptr %to
  %j_next = add i64 %j, 1
  %writing = icmp ult i64 %j_next, %n
  br i1 %writing, label %write, label %read
read:
  %k = phi i64 [0, %write], [%k_next, %read]
  %sum = phi i64 [0, %write], [%sum_next, %read]
  %from = getelementptr i64, ptr %scratch, i64 %k
  %word = load volatile i64, ptr %from
  %sum_next = add i64 %sum, %word
  %k_next = add i64 %k, 1
  %reading = icmp ult i64 %k_next, %n
  br i1 %reading, label %read, label %done
done:
  %at = getelementptr i64, ptr %data, i64 %i
  store i64 %sum_next, ptr %at
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, %end
  br i1 %more, label %unit, label %exit
exit:
  ret void
}}
"""

# data[i] = bits of (float32) denormal * 1: zero where denormals are flushed. The factor is an
# argument, so that nothing is folded away.
_DENORMAL = """
define void @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
entry:
  %data = load ptr, ptr %args
  %bits_at = getelementptr i64, ptr %args, i64 1
  %small = load float, ptr %bits_at
  %one_at = getelementptr i64, ptr %args, i64 2
  %one = load float, ptr %one_at
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%i_next, %loop]
  %product = fmul float %small, %one
  %bits = bitcast float %product to i32
  %wide = zext i32 %bits to i64
  %at = getelementptr i64, ptr %data, i64 %i
  store i64 %wide, ptr %at
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


def named(family: str, template: str) -> tuple[str, str]:
    """A name made from the content, and the text under it."""
    name = f"{family}_{hashlib.sha256(template.encode()).hexdigest()[:16]}"
    return name, template.format(name=name)


def compiled(family: str, template: str) -> int:
    """Address of a kernel from its template."""
    name, text = named(family, template)
    return jit.compile_functions({name: text})[name]


def multiply_add() -> int:
    return compiled("test_multiply_add", _MULTIPLY_ADD)


def slow_count() -> int:
    return compiled("test_slow_count", _SLOW_COUNT)


def use_scratch() -> int:
    return compiled("test_use_scratch", _USE_SCRATCH)


def denormal() -> int:
    return compiled("test_denormal", _DENORMAL)


class Words:
    """A block of zeroed 64-bit words, readable from Python."""

    def __init__(self, n_words: int) -> None:
        self.block = memory.allocate(8 * n_words)
        self.address = self.block.address
        ctypes.memset(self.address, 0, 8 * n_words)
        self.words = (ctypes.c_int64 * n_words).from_address(self.address)


Step = tuple[int, int, int, list[int], list[tuple[int, int, int, int, int]]]


def program(steps: list[Step], scratch_bytes: int = 0) -> array[int]:
    """Words of a program of (kernel, n_units, chunk_units, arguments, patches)."""
    most = max((len(arguments) for _, _, _, arguments, _ in steps), default=0)
    words = array("q", (len(steps), most, scratch_bytes, 0))
    for kernel, n_units, chunk_units, arguments, patches in steps:
        words.extend((kernel, n_units, chunk_units, len(arguments), len(patches), scratch_bytes))
        words.extend(arguments)
        for patch in patches:
            words.extend(patch)
    return words


def function(address: int, *kinds: type, result: type | None = None) -> Callable[..., object]:
    """A native function callable from Python."""
    return ctypes.CFUNCTYPE(result, *kinds)(address)


def run_single(kernel: int, arguments: array[int], n_units: int, chunk_units: int) -> RunResult:
    """Run one kernel over `n_units`, without scratch memory."""
    n_arguments = len(arguments)
    words = array("q", (1, n_arguments, 0, 0, kernel, n_units, chunk_units, n_arguments, 0, 0))
    words.extend(arguments)
    return runner.run(words, NOTHING, NOTHING)


def in_new_process(code: str, **environment: str) -> str:
    """Output of a fresh interpreter that runs `code`; fails the test if it does not end well."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout
