"""LLVM text of the runner: one native call walks a program of steps.

Keeps     a step ends before the next begins; small steps run on the calling thread with no
          synchronisation; coming back early loses nothing and repeats nothing: the call goes on
          at the very chunk where it stopped.
Touches   nothing: text only.
Not here  the worker's side (team/text.py), building programs (engine/run.py)."""

from __future__ import annotations

from typing import Final

from flambeau.devices.cpu.team.text import (
    ARGUMENTS,
    CALLER_CPU,
    CHUNK_MASK,
    CHUNK_UNITS,
    CONTROL,
    CUT,
    DECLARATIONS,
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

_CONTROL_DEFAULT: Final = 0x1F80  # MXCSR: round to nearest, all exceptions masked
_CONTROL_FLUSH: Final = 0x8040  # flush to zero, denormals are zero


def _word(name: str, base: str, index: int, kind: str = "i64") -> str:
    return f"""  %{name}_at = getelementptr i64, ptr %{base}, i64 {index}
  %{name} = load {kind}, ptr %{name}_at
"""


def _store(value: str, base: str, index: int) -> str:
    name = f"{base}_{index}_{value}".replace("%", "")
    return f"""  %{name} = getelementptr i64, ptr %{base}, i64 {index}
  store i64 {value}, ptr %{name}
"""


def runner_text(name: str) -> str:
    """i64 run(state): DONE, AGAIN or NEEDS_TEAM."""
    return DECLARATIONS + _run_text(name) + _patch_text() + _chunks_text() + _alone_text()


def _run_text(name: str) -> str:
    return f"""
declare i64 @llvm.ctpop.i64(i64)
define i64 @{name}(ptr %state) {{
entry:
{_word("program", "state", PROGRAM, "ptr")}{_word("addresses", "state", ADDRESSES, "ptr")}
{_word("numbers", "state", NUMBERS, "ptr")}{_word("finished", "state", FINISHED)}
  %nothing_left = icmp ne i64 %finished, 0
  br i1 %nothing_left, label %return_done, label %prepare

return_done:
  ret i64 {DONE}

prepare:
{_word("n_steps", "program", 0)}{_word("max_args", "program", 1)}
  %buffer = alloca i64, i64 %max_args, align 64
  %old_control = alloca i32
  %control = alloca i32
{_word("flush", "state", FLUSH_DENORMALS)}
  %flushing = icmp ne i64 %flush, 0
  %mode = select i1 %flushing, i32 {_CONTROL_DEFAULT | _CONTROL_FLUSH}, i32 {_CONTROL_DEFAULT}
  store i32 %mode, ptr %control
  call void @llvm.x86.sse.stmxcsr(ptr %old_control)
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
{_word("slice", "state", SLICE_CYCLES)}
  %start = call i64 @llvm.readcyclecounter()
  %end_of_slice = add i64 %start, %slice
  %endless = icmp eq i64 %slice, 0
  %deadline = select i1 %endless, i64 -1, i64 %end_of_slice
{_word("scratch_word", "state", CALLER_SCRATCH)}
  %scratch = inttoptr i64 %scratch_word to ptr
{_word("step0", "state", RESUME_STEP)}{_word("unit0", "state", RESUME_UNIT)}
{_word("position0", "state", RESUME_POSITION)}{_word("launched_old", "state", KERNELS_LAUNCHED)}
{_word("mask_old", "state", USED_MASK)}
  %at_start = icmp eq i64 %position0, 0
  %position1 = select i1 %at_start, i64 {HEADER_WORDS}, i64 %position0
  %launched0 = select i1 %at_start, i64 0, i64 %launched_old
  %mask0 = select i1 %at_start, i64 0, i64 %mask_old
{_store("%mask0", "state", USED_MASK)}
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
{_word("n_units", "words", 1)}{_word("chunk", "words", 2)}{_word("n_args", "words", 3)}
{_word("n_patches", "words", 4)}
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
{_store("1", "state", FINISHED)}
  br label %leave

leave:
  %result = phi i64 [%status, %save], [{DONE}, %finish]
  %end_step = phi i64 [%save_step, %save], [0, %finish]
  %end_unit = phi i64 [%save_unit, %save], [0, %finish]
  %end_position = phi i64 [%save_position, %save], [0, %finish]
  %end_launched = phi i64 [%save_launched, %save], [%launched, %finish]
{_store("%end_step", "state", RESUME_STEP)}{_store("%end_unit", "state", RESUME_UNIT)}
{_store("%end_position", "state", RESUME_POSITION)}
{_store("%end_launched", "state", KERNELS_LAUNCHED)}
{_word("mask", "state", USED_MASK)}
  %others = call i64 @llvm.ctpop.i64(i64 %mask)
  %threads = add i64 %others, 1
{_store("%threads", "state", THREADS_USED)}
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
{_word("address_index", "one", 1)}{_word("bytes", "one", 2)}{_word("number_index", "one", 3)}
{_word("scale", "one", 4)}
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


def _chunks_text() -> str:
    """A step of several chunks: with the team if it is free, alone if it is not.

    Returns the first unit not done; -1 if the team has to be made first."""
    return f"""
define internal i64 @chunks(ptr %kernel, ptr %arguments, i64 %n_units, i64 %chunk_units,
                            i64 %first, ptr %state, i64 %deadline, i32 %mode) {{
entry:
{_word("scratch_word", "state", CALLER_SCRATCH)}{_word("wanted", "state", THREADS_WANTED)}
{_word("team_word", "state", TEAM_ADDRESS)}{_word("tail", "state", RESUME_TAIL)}
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
{_word("mask_before", "state", USED_MASK)}
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
  %back_unit = add i64 %first, %back_offset
  %back_done = sub i64 %n_units, %back_unit
  %none_at_back = icmp eq i64 %at_back, 0
  %tail_now = select i1 %none_at_back, i64 %tail, i64 %back_done
  store i64 %tail_now, ptr %tail_at
  ret i64 %reached
}}
"""


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
