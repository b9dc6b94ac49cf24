"""The parent's side of worker processes.

Keeps     batches come in the order of their indices whatever worker is first; a worker that dies
          is an error, never a wait; workers end with the pass, the loader or the program.
Touches   _utils.worker, _utils.transport.
Not here  what workers do (_utils/worker.py)."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from multiprocessing import connection
from typing import Any, Final

from flambeau.utils.data._utils import transport, worker
from flambeau.utils.data.dataloader import _BaseDataLoaderIter

JOIN_SECONDS: Final = 5.0


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass whose batches are made by worker processes."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._processes: list[Any] = []
        self._to: list[Any] = []
        self._from: list[Any] = []
        self._is_closed = False
        context = loader.multiprocessing_context or multiprocessing.get_context("fork")
        settings = {
            "auto_collation": loader._auto_collation, "collate_fn": loader.collate_fn,
            "drop_last": loader.drop_last, "worker_init_fn": loader.worker_init_fn,
        }  # fmt: skip
        for number in range(loader.num_workers):
            self._start(context, settings, number)
        self._begin()

    def _start(self, context: Any, settings: dict[str, Any], number: int) -> None:
        theirs_in, ours_out = context.Pipe(duplex=False)
        ours_in, theirs_out = context.Pipe(duplex=False)
        self._to.append(ours_out)
        self._from.append(ours_in)
        is_fork = context.get_start_method() == "fork"
        inherited = [*self._to, *self._from] if is_fork else []
        process = context.Process(
            target=worker.work,
            args=(
                self._loader.dataset, theirs_in, theirs_out, inherited, settings,
                self._base_seed, number, self._loader.num_workers,
            ),
            daemon=True,
        )  # fmt: skip
        process.start()
        theirs_in.close()
        theirs_out.close()
        self._processes.append(process)

    def _begin(self) -> None:
        loader = self._loader
        self._sent = 0  # positions handed out
        self._wanted = 0  # position to be given next
        self._turn = 0
        self._active = [True] * loader.num_workers
        self._owner: dict[int, int] = {}  # position -> worker at work on it
        self._arrived: dict[int, Any] = {}
        for _ in range((loader.prefetch_factor or 0) * loader.num_workers):
            self._hand_out()

    def reset(self, loader: Any) -> None:
        """Start another pass with the same workers."""
        self._drain()
        self._yielded = 0
        self._sampler_iter = iter(loader._index_sampler)
        for pipe in self._to:
            pipe.send(worker.RESUME)
        self._begin()

    def _drain(self) -> None:
        """Receive what is still under way from a pass that was left."""
        while self._owner:
            self._receive()
        self._arrived.clear()

    def _hand_out(self, to: int | None = None) -> None:
        """Send the next index to the next worker that is still at work."""
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        count = len(self._processes)
        for _ in range(count):
            number = self._turn if to is None else to
            self._turn = (self._turn + 1) % count
            if self._active[number]:
                break
            to = None
        else:
            return
        self._owner[self._sent] = number
        try:
            self._to[number].send((self._sent, index))
        except (BrokenPipeError, ConnectionResetError):
            self._died([number])
        self._sent += 1

    def next_data(self) -> Any:
        if self._is_closed:
            raise StopIteration
        while True:
            position = self._next_position()
            if position is None:
                if not self._loader.persistent_workers:
                    self.close()
                raise StopIteration
            if position not in self._arrived:
                self._receive()
                continue
            data = self._arrived.pop(position)
            if position == self._wanted:
                self._wanted += 1
            if isinstance(data, worker.Exhausted):
                continue
            self._hand_out()
            if isinstance(data, worker.WorkerError):
                data.reraise()
            return data

    def _next_position(self) -> int | None:
        """The position to be given next, or None at the end."""
        if not self._loader.in_order and self._arrived:
            return int(next(iter(self._arrived)))
        while self._wanted < self._sent:
            if self._wanted in self._arrived or self._wanted in self._owner:
                return self._wanted
            self._wanted += 1
        return None

    def _receive(self) -> None:
        """Take one message; raises when a worker died or the time is up."""
        timeout = self._loader.timeout or None
        deadline = None if timeout is None else time.monotonic() + timeout
        waiting: dict[Any, int] = {
            self._from[number]: number for number in set(self._owner.values())
        }
        sentinels: dict[Any, int] = {
            self._processes[number].sentinel: number for number in waiting.values()
        }
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        ready: list[Any] = connection.wait([*waiting, *sentinels], left)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")
        dead = []
        for each in ready:
            if each in waiting:
                try:
                    raw = each.recv_bytes()
                except (EOFError, ConnectionResetError):
                    dead.append(waiting[each])
                    continue
                self._take(*transport.loads(raw))
                return
        self._died(dead or [sentinels[each] for each in ready])

    def _take(self, position: int, data: Any) -> None:
        number = self._owner.pop(position)
        if isinstance(data, worker.Exhausted):
            self._active[number] = False
            # What it was still asked for will not come.
            for other in [p for p, owner in self._owner.items() if owner == number]:
                del self._owner[other]
            self._hand_out()
        self._arrived[position] = data

    def _died(self, numbers: list[int]) -> None:
        for number in numbers:
            self._processes[number].join(1.0)
        pids = ", ".join(str(self._processes[number].pid) for number in numbers)
        codes = [self._processes[number].exitcode for number in numbers]
        self.close()
        signals = [-code for code in codes if code is not None and code < 0]
        if signals:
            import signal

            name = signal.Signals(signals[0]).name.removeprefix("SIG").capitalize()
            raise RuntimeError(
                f"DataLoader worker (pid {pids}) is killed by signal: "
                f"{signal.strsignal(signals[0]) or name}. "
            )
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")

    def close(self) -> None:
        """End the workers."""
        if self._is_closed:
            return
        self._is_closed = True
        for pipe in self._to:
            with contextlib.suppress(BrokenPipeError, OSError):
                pipe.send(worker.STOP)
            pipe.close()
        for pipe in self._from:
            pipe.close()
        for process in self._processes:
            process.join(JOIN_SECONDS)
            if process.is_alive():
                process.terminate()
                process.join()
            process.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be half gone
            self.close()
