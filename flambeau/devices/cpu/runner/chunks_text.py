"""LLVM text of the runner's large steps: handing out chunks from the caller's side.

Keeps     a step that comes back early has one run of units left: after the caller's chunks and,
          where both ends were taken, before the worker's.
Touches   nothing: text only.
Not here  the walk over steps (text.py), the worker's side (team/text.py)."""

from __future__ import annotations

from flambeau.devices.cpu.runner.words import (
    CALLER_SCRATCH,
    RESUME_TAIL,
    TEAM_ADDRESS,
    THREADS_WANTED,
    USED_MASK,
    word,
)
from flambeau.devices.cpu.team.text import (
    ARGUMENTS,
    CALLER_CPU,
    CHUNK_MASK,
    CHUNK_UNITS,
    CONTROL,
    CUT,
    FIRST_UNIT,
    FROM_ENDS,
    FUTEX,
    FUTEX_WAIT,
    FUTEX_WAKE,
    HOLDER,
    KERNEL,
    N_CHUNKS,
    N_UNITS,
    OPEN,
    OWNER,
    SEQUENCE,
    SIZE,
    SLEEPERS,
    SPIN_CYCLES,
    USED,
    WAITING,
    WORD,
    field,
)


def chunks_text() -> str:
    """A step of several chunks: with the team if it is free, alone if it is not.

    Returns the first unit not done; -1 if the team has to be made first."""
    return (
        _alone_text()
        + f"""
define internal i64 @chunks(ptr %kernel, ptr %arguments, i64 %n_units, i64 %chunk_units,
                            i64 %first, ptr %state, i64 %deadline, i32 %mode) {{
entry:
{word("scratch_word", "state", CALLER_SCRATCH)}{word("wanted", "state", THREADS_WANTED)}
{word("team_word", "state", TEAM_ADDRESS)}{word("tail", "state", RESUME_TAIL)}
  %scratch = inttoptr i64 %scratch_word to ptr
  %team = inttoptr i64 %team_word to ptr
  %limit = sub i64 %n_units, %tail
  %units_left = sub i64 %limit, %first
  %rounded_up = add i64 %units_left, %chunk_units
  %rounded = sub i64 %rounded_up, 1
  %n_chunks = udiv i64 %rounded, %chunk_units
  %one_thread = icmp ule i64 %wanted, 1
  %one_chunk = icmp ule i64 %n_chunks, 1
  %single = or i1 %one_thread, %one_chunk
  br i1 %single, label %alone, label %have_team

have_team:
  %no_team = icmp eq i64 %team_word, 0
  br i1 %no_team, label %needs_team, label %right_size

right_size:
{field("sequence", SEQUENCE)}{field("sleepers", SLEEPERS)}{field("word", WORD)}
{field("upper", WORD + 4)}{field("owner", OWNER)}{field("waiting", WAITING)}
{field("size_at", SIZE)}{field("spin_at", SPIN_CYCLES)}{field("used", USED)}
  %size = load atomic i32, ptr %size_at monotonic, align 4
  %size64 = zext i32 %size to i64
  %fits = icmp eq i64 %size64, %wanted
  br i1 %fits, label %take, label %needs_team

needs_team:
  ret i64 -1

alone:
  %reached_alone = call i64 @alone(ptr %kernel, ptr %arguments, i64 %limit, i64 %chunk_units,
                                   i64 %first, ptr %scratch, i64 %deadline)
  %stopped = icmp ult i64 %reached_alone, %limit
  br i1 %stopped, label %partly, label %whole

partly:
  ret i64 %reached_alone

whole:
  store i64 0, ptr %tail_at
  ret i64 %n_units

take:
  %swap = cmpxchg ptr %owner, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue {{i32, i1}} %swap, 1
  br i1 %won, label %publish, label %alone

publish:
{field("kernel_at", KERNEL)}{field("arguments_at", ARGUMENTS)}{field("n_units_at", N_UNITS)}
{field("chunk_at", CHUNK_UNITS)}{field("first_at", FIRST_UNIT)}{field("n_chunks_at", N_CHUNKS)}
{field("control_at", CONTROL)}{field("cpu_at", CALLER_CPU)}
{field("from_ends_at", FROM_ENDS)}
  %from_ends = icmp eq i64 %wanted, 2
  %from_ends_word = zext i1 %from_ends to i64
  store i64 %from_ends_word, ptr %from_ends_at
  %cpu = call i32 @sched_getcpu()
  store atomic i32 %cpu, ptr %cpu_at monotonic, align 4
  store ptr %kernel, ptr %kernel_at
  store ptr %arguments, ptr %arguments_at
  store i64 %limit, ptr %n_units_at
  store i64 %chunk_units, ptr %chunk_at
  store i64 %first, ptr %first_at
  store atomic i64 %n_chunks, ptr %n_chunks_at monotonic, align 8
  store i32 %mode, ptr %control_at
  store atomic i64 0, ptr %used monotonic, align 8
  ; Open, and chunk 0 is ours.
  store atomic i64 {OPEN + 1}, ptr %word release, align 8
  %published = atomicrmw add ptr %sequence, i32 1 seq_cst
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any_asleep = icmp ne i32 %asleep, 0
  br i1 %any_asleep, label %wake, label %chunk

wake:
  %asleep64 = zext i32 %asleep to i64
  %other_chunks = sub i64 %n_chunks, 1
  %to_wake = call i64 @llvm.umin.i64(i64 %asleep64, i64 %other_chunks)
  %woken = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %sequence, i64 {FUTEX_WAKE},
                                        i64 %to_wake, ptr null, ptr null, i64 0)
  br label %chunk

chunk:
  %ticket = phi i64 [0, %publish], [0, %wake], [%index_next, %claim]
  %own = phi i64 [0, %publish], [0, %wake], [%own_next, %claim]
  %own_next = add i64 %own, 1
  %index = select i1 %from_ends, i64 %own, i64 %ticket
  %offset = mul i64 %index, %chunk_units
  %begin = add i64 %first, %offset
  %end_full = add i64 %begin, %chunk_units
  %end = call i64 @llvm.umin.i64(i64 %end_full, i64 %limit)
  call void %kernel(ptr %arguments, i64 %begin, i64 %end, ptr %scratch)
  %now = call i64 @llvm.readcyclecounter()
  %late = icmp ugt i64 %now, %deadline
  br i1 %late, label %cut, label %claim

claim:
  %word_before = atomicrmw add ptr %word, i64 1 seq_cst
  %index_next = and i64 %word_before, {CHUNK_MASK}
  %more = icmp ult i64 %index_next, %n_chunks
  br i1 %more, label %chunk, label %close

cut:
  ; Nobody finds another chunk; as many as the number we read are done or held.
  %word_cut = atomicrmw add ptr %word, i64 {CUT} seq_cst
  %index_cut = and i64 %word_cut, {CHUNK_MASK}
  br label %close

close:
  %index_end = phi i64 [%index_next, %claim], [%index_cut, %cut]
  %word_closed = atomicrmw and ptr %word, i64 {~OPEN} seq_cst
  %spin_cycles = load i64, ptr %spin_at
  %spin_start = call i64 @llvm.readcyclecounter()
  br label %wait

wait:
  %word_now = load atomic i64, ptr %word acquire, align 8
  %held = icmp uge i64 %word_now, {HOLDER}
  br i1 %held, label %spin, label %closed

spin:
  call void @llvm.x86.sse2.pause()
  %spin_now = call i64 @llvm.readcyclecounter()
  %spun = sub i64 %spin_now, %spin_start
  %enough = icmp ugt i64 %spun, %spin_cycles
  br i1 %enough, label %sleep, label %wait

sleep:
  ; Said before the word is read again: the last worker out sees it, or we see it leave.
  store atomic i32 1, ptr %waiting seq_cst, align 4
  %word_again = load atomic i64, ptr %word seq_cst, align 8
  %still_held = icmp uge i64 %word_again, {HOLDER}
  br i1 %still_held, label %sleep_now, label %awake

sleep_now:
  %upper_now = lshr i64 %word_again, 32
  %slept = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %upper, i64 {FUTEX_WAIT},
                                        i64 %upper_now, ptr null, ptr null, i64 0)
  br label %sleep

awake:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  br label %closed

closed:
  %took_part = load atomic i64, ptr %used monotonic, align 8
{word("mask_before", "state", USED_MASK)}
  %mask = or i64 %mask_before, %took_part
  store i64 %mask, ptr %mask_before_at
  store atomic i32 0, ptr %owner release, align 4
  %past = icmp uge i64 %index_end, %n_chunks
  br i1 %past, label %whole, label %cut_short

cut_short:
  ; The rest is one run of units: after our chunks, before the worker's.
  %at_front = select i1 %from_ends, i64 %own_next, i64 %index_end
  %offset_end = mul i64 %at_front, %chunk_units
  %reached = add i64 %first, %offset_end
  %at_back = sub i64 %index_end, %at_front
  %back_chunk = sub i64 %n_chunks, %at_back
  %back_offset = mul i64 %back_chunk, %chunk_units
  %back_full = add i64 %first, %back_offset
  %back_unit = call i64 @llvm.umin.i64(i64 %back_full, i64 %limit)
  %tail_now = sub i64 %n_units, %back_unit
  store i64 %tail_now, ptr %tail_at
  ret i64 %reached
}}
"""
    )


def _alone_text() -> str:
    """The same on the calling thread only."""
    return """
define internal i64 @alone(ptr %kernel, ptr %arguments, i64 %n_units, i64 %chunk_units,
                           i64 %first, ptr %scratch, i64 %deadline) {
entry:
  br label %chunk

chunk:
  %begin = phi i64 [%first, %entry], [%end, %go_on]
  %end_full = add i64 %begin, %chunk_units
  %end = call i64 @llvm.umin.i64(i64 %end_full, i64 %n_units)
  call void %kernel(ptr %arguments, i64 %begin, i64 %end, ptr %scratch)
  %more = icmp ult i64 %end, %n_units
  br i1 %more, label %look, label %stop

look:
  %now = call i64 @llvm.readcyclecounter()
  %late = icmp ugt i64 %now, %deadline
  br i1 %late, label %stop, label %go_on

go_on:
  br label %chunk

stop:
  ret i64 %end
}
"""
