"""LLVM text of the runner: one native call walks a program of steps.

Keeps     a step ends before the next begins; small steps run on the calling thread with no
          synchronisation; coming back early loses nothing and repeats nothing: the call goes on
          at the very chunk where it stopped.
Touches   nothing: text only.
Not here  chunks of large steps (chunks_text.py), building programs (engine/run.py)."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.runner.chunks_text import chunks_text
from flambeau.devices.cpu.runner.words import (
    ADDRESSES,
    AGAIN,
    CALLER_SCRATCH,
    DONE,
    FINISHED,
    FLUSH_DENORMALS,
    HEADER_WORDS,
    KERNELS_LAUNCHED,
    NEEDS_TEAM,
    NUMBERS,
    PATCH_WORDS,
    PROGRAM,
    RESUME_POSITION,
    RESUME_STEP,
    RESUME_UNIT,
    SLICE_CYCLES,
    STEP_WORDS,
    THREADS_USED,
    USED_MASK,
    store,
    word,
)
from flambeau.devices.cpu.team.text import DECLARATIONS

_CONTROL_DEFAULT: Final = 0x1F80  # MXCSR: round to nearest, all exceptions masked
_CONTROL_FLUSH: Final = 0x8040  # flush to zero, denormals are zero


def runner_text(name: str) -> str:
    """i64 run(state): DONE, AGAIN or NEEDS_TEAM."""
    return DECLARATIONS + _run_text(name) + _patch_text() + chunks_text()


def _run_text(name: str) -> str:
    return f"""
declare i64 @llvm.ctpop.i64(i64)
define i64 @{name}(ptr %state) {{
entry:
{word("program", "state", PROGRAM, "ptr")}{word("addresses", "state", ADDRESSES, "ptr")}
{word("numbers", "state", NUMBERS, "ptr")}{word("finished", "state", FINISHED)}
  %nothing_left = icmp ne i64 %finished, 0
  br i1 %nothing_left, label %return_done, label %prepare

return_done:
  ret i64 {DONE}

prepare:
{word("n_steps", "program", 0)}{word("max_args", "program", 1)}
  %buffer = alloca i64, i64 %max_args, align 64
  %old_control = alloca i32
  %control = alloca i32
{word("flush", "state", FLUSH_DENORMALS)}
  %flushing = icmp ne i64 %flush, 0
  %mode = select i1 %flushing, i32 {_CONTROL_DEFAULT | _CONTROL_FLUSH}, i32 {_CONTROL_DEFAULT}
  store i32 %mode, ptr %control
  call void @llvm.x86.sse.stmxcsr(ptr %old_control)
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
{word("slice", "state", SLICE_CYCLES)}
  %start = call i64 @llvm.readcyclecounter()
  %end_of_slice = add i64 %start, %slice
  %endless = icmp eq i64 %slice, 0
  %deadline = select i1 %endless, i64 -1, i64 %end_of_slice
{word("scratch_word", "state", CALLER_SCRATCH)}
  %scratch = inttoptr i64 %scratch_word to ptr
{word("step0", "state", RESUME_STEP)}{word("unit0", "state", RESUME_UNIT)}
{word("position0", "state", RESUME_POSITION)}{word("mask_old", "state", USED_MASK)}
{word("launched_old", "state", KERNELS_LAUNCHED)}
  %at_start = icmp eq i64 %position0, 0
  %position1 = select i1 %at_start, i64 {HEADER_WORDS}, i64 %position0
  %launched0 = select i1 %at_start, i64 0, i64 %launched_old
  %mask0 = select i1 %at_start, i64 0, i64 %mask_old
{store("%mask0", "state", USED_MASK)}
  br label %head

head:
  %step = phi i64 [%step0, %prepare], [%next_step, %after]
  %unit = phi i64 [%unit0, %prepare], [0, %after]
  %position = phi i64 [%position1, %prepare], [%next_position, %after]
  %launched = phi i64 [%launched0, %prepare], [%launched_next, %after]
  %ended = icmp uge i64 %step, %n_steps
  br i1 %ended, label %finish, label %begin

begin:
  %words = getelementptr i64, ptr %program, i64 %position
  %kernel = load ptr, ptr %words
{word("n_units", "words", 1)}{word("chunk", "words", 2)}{word("n_args", "words", 3)}
{word("n_patches", "words", 4)}
  %statics = getelementptr i64, ptr %words, i64 {STEP_WORDS}
  %patches = getelementptr i64, ptr %statics, i64 %n_args
  %patch_words = mul i64 %n_patches, {PATCH_WORDS}
  %fixed_words = add i64 %n_args, {STEP_WORDS}
  %step_words = add i64 %fixed_words, %patch_words
  %next_position = add i64 %position, %step_words
  %unpatched = icmp eq i64 %n_patches, 0
  br i1 %unpatched, label %ready, label %patch

patch:
  call void @patch(ptr %buffer, ptr %statics, i64 %n_args, ptr %patches, i64 %n_patches,
                   ptr %addresses, ptr %numbers)
  br label %ready

ready:
  %arguments = phi ptr [%statics, %begin], [%buffer, %patch]
  %small = icmp ule i64 %n_units, %chunk
  br i1 %small, label %small_step, label %large_step

small_step:
  %nothing = icmp eq i64 %n_units, 0
  br i1 %nothing, label %empty, label %single

single:
  call void %kernel(ptr %arguments, i64 0, i64 %n_units, ptr %scratch)
  br label %done_step

large_step:
  %reached = call i64 @chunks(ptr %kernel, ptr %arguments, i64 %n_units, i64 %chunk, i64 %unit,
                              ptr %state, i64 %deadline, i32 %mode)
  %no_team = icmp eq i64 %reached, -1
  br i1 %no_team, label %team_missing, label %large_check

large_check:
  %partial = icmp ult i64 %reached, %n_units
  br i1 %partial, label %interrupted, label %done_step

done_step:
  %launched_one = add i64 %launched, 1
  br label %empty

empty:
  %launched_next = phi i64 [%launched, %small_step], [%launched_one, %done_step]
  %next_step = add i64 %step, 1
  %now = call i64 @llvm.readcyclecounter()
  %late = icmp ugt i64 %now, %deadline
  %any_left = icmp ult i64 %next_step, %n_steps
  %stop = and i1 %late, %any_left
  br i1 %stop, label %between, label %after

after:
  br label %head

between:
  br label %save
interrupted:
  br label %save
team_missing:
  br label %save

save:
  %status = phi i64 [{AGAIN}, %between], [{AGAIN}, %interrupted], [{NEEDS_TEAM}, %team_missing]
  %save_step = phi i64 [%next_step, %between], [%step, %interrupted], [%step, %team_missing]
  %save_unit = phi i64 [0, %between], [%reached, %interrupted], [%unit, %team_missing]
  %save_position = phi i64 [%next_position, %between], [%position, %interrupted],
                           [%position, %team_missing]
  %save_launched = phi i64 [%launched_next, %between], [%launched, %interrupted],
                           [%launched, %team_missing]
  br label %leave

finish:
{store("1", "state", FINISHED)}
  br label %leave

leave:
  %result = phi i64 [%status, %save], [{DONE}, %finish]
  %end_step = phi i64 [%save_step, %save], [0, %finish]
  %end_unit = phi i64 [%save_unit, %save], [0, %finish]
  %end_position = phi i64 [%save_position, %save], [0, %finish]
  %end_launched = phi i64 [%save_launched, %save], [%launched, %finish]
{store("%end_step", "state", RESUME_STEP)}{store("%end_unit", "state", RESUME_UNIT)}
{store("%end_position", "state", RESUME_POSITION)}{word("mask", "state", USED_MASK)}
{store("%end_launched", "state", KERNELS_LAUNCHED)}
  %others = call i64 @llvm.ctpop.i64(i64 %mask)
  %threads = add i64 %others, 1
{store("%threads", "state", THREADS_USED)}
  call void @llvm.x86.sse.ldmxcsr(ptr %old_control)
  ret i64 %result
}}
"""


def _patch_text() -> str:
    """Copy a step's static arguments to the buffer and put the run's addresses and numbers in."""
    return f"""
define internal void @patch(ptr %buffer, ptr %statics, i64 %n_args, ptr %patches, i64 %n_patches,
                            ptr %addresses, ptr %numbers) {{
entry:
  br label %copy

copy:
  %i = phi i64 [0, %entry], [%i_next, %copy]
  %from = getelementptr i64, ptr %statics, i64 %i
  %to = getelementptr i64, ptr %buffer, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %i_next = add i64 %i, 1
  %copying = icmp ult i64 %i_next, %n_args
  br i1 %copying, label %copy, label %patch_head

patch_head:
  %k = phi i64 [0, %copy], [%k_next, %patch_end]
  %offset = mul i64 %k, {PATCH_WORDS}
  %one = getelementptr i64, ptr %patches, i64 %offset
  %argument = load i64, ptr %one
{word("address_index", "one", 1)}{word("bytes", "one", 2)}{word("number_index", "one", 3)}
{word("scale", "one", 4)}
  %has_address = icmp sge i64 %address_index, 0
  br i1 %has_address, label %with_address, label %address_done

with_address:
  %address_at = getelementptr i64, ptr %addresses, i64 %address_index
  %address = load i64, ptr %address_at
  %address_sum = add i64 %address, %bytes
  br label %address_done

address_done:
  %base = phi i64 [%bytes, %patch_head], [%address_sum, %with_address]
  %has_number = icmp sge i64 %number_index, 0
  br i1 %has_number, label %with_number, label %patch_end

with_number:
  %number_at = getelementptr i64, ptr %numbers, i64 %number_index
  %number = load i64, ptr %number_at
  %scaled = mul i64 %number, %scale
  %number_sum = add i64 %base, %scaled
  br label %patch_end

patch_end:
  %value = phi i64 [%base, %address_done], [%number_sum, %with_number]
  %slot = getelementptr i64, ptr %buffer, i64 %argument
  store i64 %value, ptr %slot
  %k_next = add i64 %k, 1
  %patching = icmp ult i64 %k_next, %n_patches
  br i1 %patching, label %patch_head, label %end

end:
  ret void
}}
"""
