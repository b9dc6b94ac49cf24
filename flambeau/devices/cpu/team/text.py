"""LLVM text of the worker team: what a worker thread does, how the team changes its size.

Keeps     a caller waits only for workers that hold a chunk; a worker that comes late finds the
          job closed and touches nothing; workers never run Python nor receive signals; none stays
          on the caller's CPU.
Touches   nothing: text only. At run time pthread_create, sched_yield, sched_getcpu and the system
          calls futex and sched_setaffinity.
Not here  handing out chunks from the caller's side (runner/chunks_text.py), the Python side
          (team/__init__.py).

One 64-bit word holds the whole state of a job, so that joining and taking a chunk is one
compare-and-swap:

    bit 63       open: workers may join
    bits 48..62  workers that hold a chunk
    bits 0..47   number of the next chunk; runs past the last one, by 2^40 when the job is cut

Which chunk a number stands for: with two threads the caller takes its own from the front and the
worker its own from the back, so that each finds in its caches what it left there, last time or in
the step before; a number then only says that a chunk is left. With more threads it is the number's.

The job's other fields are written while the word is closed and held by nobody, and read after
joining. A worker looks at them before that only to guess whether joining is worth it.

A worker that is woken while every CPU is busy is put where it ran last. Where that is the caller's
CPU it runs only when the caller does not, and sleeps too much for the system to see two busy
threads and move one: no step would ever have two threads. So it forbids itself that CPU."""

from __future__ import annotations

from typing import Final

MAXIMUM_THREADS: Final = 256

# Byte offsets in a team's memory; what is written by different threads is a cache line apart.
SEQUENCE: Final = 0  # i32, futex: jobs published so far
SLEEPERS: Final = 64  # i32: workers in the futex, or about to be
WORD: Final = 128  # i64, see above
KERNEL: Final = 192
ARGUMENTS: Final = 200
N_UNITS: Final = 208
CHUNK_UNITS: Final = 216
FIRST_UNIT: Final = 224
N_CHUNKS: Final = 232
CONTROL: Final = 240  # i32: MXCSR of the job
CALLER_CPU: Final = 244  # i32: where the caller ran when it published the job
FROM_ENDS: Final = 248  # i64: 1 where chunks are taken from both ends
USED: Final = 256  # i64: a bit for each worker that took a chunk
OWNER: Final = 320  # i32: 1 while a caller has the team
WAITING: Final = 384  # i32: 1 while the caller sleeps until the word's upper half changes
SIZE: Final = 448  # i32: threads, caller included
ALIVE: Final = 452  # i32: worker threads that exist
SPIN_CYCLES: Final = 456  # i64: how long to spin before sleeping
ALLOWED: Final = 512  # a bit for each CPU that workers may run on
ALLOWED_BYTES: Final = 128
WORKERS: Final = ALLOWED + ALLOWED_BYTES
WORKER_BYTES: Final = 64
SCRATCH: Final = 0  # of a worker: address of its scratch memory
TEAM: Final = 8
NUMBER: Final = 16  # 1 .. size - 1; the caller is 0
TEAM_BYTES: Final = WORKERS + MAXIMUM_THREADS * WORKER_BYTES

OPEN: Final = -(1 << 63)
HOLDER: Final = 1 << 48
CHUNK_MASK: Final = HOLDER - 1
CUT: Final = 1 << 40

SET_AFFINITY: Final = 203  # numbers of system calls on x86-64
FUTEX: Final = 202
FUTEX_WAIT: Final = 128  # private to the process
FUTEX_WAKE: Final = 129

DECLARATIONS: Final = """
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @sched_getcpu()
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
"""


def field(name: str, offset: int, base: str = "team") -> str:
    """Line that points %name at a byte offset."""
    return f"  %{name} = getelementptr i8, ptr %{base}, i64 {offset}\n"


_TEAM_FIELDS: Final = "".join(
    field(name, offset)
    for name, offset in {
        "sequence": SEQUENCE, "sleepers": SLEEPERS, "word": WORD, "n_chunks_at": N_CHUNKS,
        "size_at": SIZE, "alive": ALIVE, "owner": OWNER,
    }.items()
)  # fmt: skip


def worker_text(name: str) -> str:
    """Thread function: void *worker(worker's record)."""
    return f"""{DECLARATIONS}
define ptr @{name}(ptr %record) {{
entry:
{field("team_at", TEAM, "record")}{field("number_at", NUMBER, "record")}
  %team = load ptr, ptr %team_at
  %number64 = load i64, ptr %number_at
  %number = trunc i64 %number64 to i32
{_TEAM_FIELDS}{field("spin_at", SPIN_CYCLES)}{field("kernel_at", KERNEL)}
{field("arguments_at", ARGUMENTS)}{field("n_units_at", N_UNITS)}{field("chunk_at", CHUNK_UNITS)}
{field("first_at", FIRST_UNIT)}{field("control", CONTROL)}{field("used", USED)}
{field("waiting", WAITING)}{field("upper", WORD + 4)}{field("caller_cpu_at", CALLER_CPU)}
{field("allowed", ALLOWED)}{field("from_ends_at", FROM_ENDS)}
  %elsewhere = alloca [{ALLOWED_BYTES // 8} x i64]
  %bit_number = and i64 %number64, 63
  %bit = shl i64 1, %bit_number
  br label %look

look:
  ; The sequence is read before the word: a job published after this changes it.
  %seen = load atomic i32, ptr %sequence seq_cst, align 4
  %size = load atomic i32, ptr %size_at acquire, align 4
  %superfluous = icmp uge i32 %number, %size
  br i1 %superfluous, label %end, label %job

job:
  %now = load atomic i64, ptr %word acquire, align 8
  %open = icmp slt i64 %now, 0
  %next = and i64 %now, {CHUNK_MASK}
  %guess = load atomic i64, ptr %n_chunks_at monotonic, align 8
  %left = icmp ult i64 %next, %guess
  %worth = and i1 %open, %left
  br i1 %worth, label %place, label %spin_begin

place:
  %own_cpu = call i32 @sched_getcpu()
  %caller_cpu = load atomic i32, ptr %caller_cpu_at monotonic, align 4
  %together = icmp eq i32 %own_cpu, %caller_cpu
  %in_mask = icmp ult i32 %own_cpu, {8 * ALLOWED_BYTES}
  %in_the_way = and i1 %together, %in_mask
  br i1 %in_the_way, label %move, label %join

move:
  ; Where there is no other CPU the call fails, and we stay.
  call void @llvm.memcpy.p0.p0.i64(ptr %elsewhere, ptr %allowed, i64 {ALLOWED_BYTES}, i1 false)
  %cpu = zext i32 %own_cpu to i64
  %cpu_word = lshr i64 %cpu, 6
  %cpu_bit = and i64 %cpu, 63
  %cpu_mask = shl i64 1, %cpu_bit
  %cpu_at = getelementptr i64, ptr %elsewhere, i64 %cpu_word
  %cpus = load i64, ptr %cpu_at
  %others_mask = xor i64 %cpu_mask, -1
  %other_cpus = and i64 %cpus, %others_mask
  store i64 %other_cpus, ptr %cpu_at
  %moved = call i64 (i64, ...) @syscall(i64 {SET_AFFINITY}, i64 0, i64 {ALLOWED_BYTES},
                                        ptr %elsewhere)
  br label %join

join:
  %joined = add i64 %now, {HOLDER + 1}
  %swap = cmpxchg ptr %word, i64 %now, i64 %joined seq_cst seq_cst
  %won = extractvalue {{i64, i1}} %swap, 1
  br i1 %won, label %held, label %look

held:
  ; From here to `leave` the caller waits for us, so the job's fields stay as they are.
  %kernel = load ptr, ptr %kernel_at
  %arguments = load ptr, ptr %arguments_at
  %n_units = load i64, ptr %n_units_at
  %chunk_units = load i64, ptr %chunk_at
  %first = load i64, ptr %first_at
  %from_ends_word = load i64, ptr %from_ends_at
  %from_ends = icmp ne i64 %from_ends_word, 0
  %n_chunks = load atomic i64, ptr %n_chunks_at monotonic, align 8
  %scratch = load ptr, ptr %record
  %valid = icmp ult i64 %next, %n_chunks
  br i1 %valid, label %start, label %leave

start:
  call void @llvm.x86.sse.ldmxcsr(ptr %control)
  %old_used = atomicrmw or ptr %used, i64 %bit monotonic
  br label %chunk

chunk:
  %ticket = phi i64 [%next, %start], [%index_next, %chunk]
  %own = phi i64 [1, %start], [%own_next, %chunk]
  %own_next = add i64 %own, 1
  %from_back = sub i64 %n_chunks, %own
  %index = select i1 %from_ends, i64 %from_back, i64 %ticket
  %offset = mul i64 %index, %chunk_units
  %begin = add i64 %first, %offset
  %end_full = add i64 %begin, %chunk_units
  %end_unit = call i64 @llvm.umin.i64(i64 %end_full, i64 %n_units)
  call void %kernel(ptr %arguments, i64 %begin, i64 %end_unit, ptr %scratch)
  %word_before = atomicrmw add ptr %word, i64 1 seq_cst
  %index_next = and i64 %word_before, {CHUNK_MASK}
  %more = icmp ult i64 %index_next, %n_chunks
  br i1 %more, label %chunk, label %leave

leave:
  %word_held = atomicrmw sub ptr %word, i64 {HOLDER} seq_cst
  %upper_bits = lshr i64 %word_held, 48
  %holders = and i64 %upper_bits, 32767
  %last = icmp eq i64 %holders, 1
  br i1 %last, label %last_out, label %look

last_out:
  %sleeping = load atomic i32, ptr %waiting seq_cst, align 4
  %wake = icmp ne i32 %sleeping, 0
  br i1 %wake, label %wake_caller, label %look

wake_caller:
  %woken = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %upper, i64 {FUTEX_WAKE}, i64 1,
                                        ptr null, ptr null, i64 0)
  br label %look

spin_begin:
  %spin_cycles = load i64, ptr %spin_at
  %spin_start = call i64 @llvm.readcyclecounter()
  br label %spin

spin:
  call void @llvm.x86.sse2.pause()
  %sequence_now = load atomic i32, ptr %sequence acquire, align 4
  %changed = icmp ne i32 %sequence_now, %seen
  br i1 %changed, label %look, label %spin_on

spin_on:
  %spin_now = call i64 @llvm.readcyclecounter()
  %spun = sub i64 %spin_now, %spin_start
  %enough = icmp uge i64 %spun, %spin_cycles
  br i1 %enough, label %sleep, label %spin

sleep:
  ; The kernel compares the sequence again: a job published meanwhile sends us back at once.
  %before = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %seen64 = zext i32 %seen to i64
  %slept = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %sequence, i64 {FUTEX_WAIT}, i64 %seen64,
                                        ptr null, ptr null, i64 0)
  %after = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %look

end:
  %others = atomicrmw sub ptr %alive, i32 1 seq_cst
  ret ptr null
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def resize_text(name: str) -> str:
    """i64 resize(team, size, worker function): returns the number of worker threads alive."""
    return f"""{DECLARATIONS}
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
define i64 @{name}(ptr %team, i64 %size, ptr %worker) {{
entry:
  %thread = alloca i64
  %blocked = alloca [16 x i64]
  %signals = alloca [16 x i64]
{_TEAM_FIELDS}
  %size32 = trunc i64 %size to i32
  %wanted = sub i32 %size32, 1
  br label %lock

lock:
  %swap = cmpxchg ptr %owner, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue {{i32, i1}} %swap, 1
  br i1 %won, label %locked, label %lock_wait

lock_wait:
  %yielded = call i32 @sched_yield()
  br label %lock

locked:
  store atomic i32 %size32, ptr %size_at seq_cst, align 4
  %old_sequence = atomicrmw add ptr %sequence, i32 1 seq_cst
  %alive_before = load atomic i32, ptr %alive seq_cst, align 4
  %too_many = icmp ugt i32 %alive_before, %wanted
  br i1 %too_many, label %shrink, label %grow

shrink:
  ; A number is given again only when its thread is gone: two workers never share scratch.
  %woken = call i64 (i64, ...) @syscall(i64 {FUTEX}, ptr %sequence, i64 {FUTEX_WAKE},
                                        i64 2147483647, ptr null, ptr null, i64 0)
  %yielded_again = call i32 @sched_yield()
  %alive_now = load atomic i32, ptr %alive seq_cst, align 4
  %still = icmp ugt i32 %alive_now, %wanted
  br i1 %still, label %shrink, label %unlock

grow:
  ; Signals are for the interpreter's threads: a worker is born with all of them blocked.
  call void @llvm.memset.p0.i64(ptr %blocked, i8 -1, i64 128, i1 false)
  %masked = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %signals)
  br label %grow_check

grow_check:
  %n = phi i32 [%alive_before, %grow], [%number, %created]
  %missing = icmp ult i32 %n, %wanted
  br i1 %missing, label %create, label %grown

create:
  %number = add i32 %n, 1
  %number64 = zext i32 %number to i64
  %record_offset = mul i64 %number64, {WORKER_BYTES}
  %records = getelementptr i8, ptr %team, i64 {WORKERS}
  %record = getelementptr i8, ptr %records, i64 %record_offset
{field("team_at", TEAM, "record")}{field("number_at", NUMBER, "record")}
  store ptr %team, ptr %team_at
  store i64 %number64, ptr %number_at
  %counted = atomicrmw add ptr %alive, i32 1 seq_cst
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr %worker, ptr %record)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %uncount, label %created

created:
  %handle = load i64, ptr %thread
  %detached = call i32 @pthread_detach(i64 %handle)
  br label %grow_check

uncount:
  ; The system gives us no more threads: the team works with those it has.
  %uncounted = atomicrmw sub ptr %alive, i32 1 seq_cst
  br label %grown

grown:
  %unmasked = call i32 @pthread_sigmask(i32 2, ptr %signals, ptr null)
  br label %unlock

unlock:
  %alive_at_end = load atomic i32, ptr %alive seq_cst, align 4
  store atomic i32 0, ptr %owner release, align 4
  %result = zext i32 %alive_at_end to i64
  ret i64 %result
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
