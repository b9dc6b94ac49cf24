"""What a worker process does: receive indices, send batches back.

Keeps     a worker ends when its parent does; errors travel with their traceback; it computes with
          one thread and draws from its own seeds.
Touches   fetch, transport.
Not here  the parent's side (workers.py)."""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import traceback
from typing import Any

from flambeau.utils.data._utils import fetch, transport

CHECK_SECONDS = 5.0
STOP = "stop"
RESUME = "resume"


class WorkerInfo:
    """What get_worker_info() tells a worker."""

    __slots__ = ("dataset", "id", "num_workers", "seed")

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return (
            f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, "
            f"dataset={self.dataset!r})"
        )


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker this process is; None outside of workers."""
    return _worker_info


class Exhausted:
    """A worker's iterable dataset has no more samples."""


class WorkerError:
    """An exception of a worker, as text and type."""

    def __init__(self, where: str) -> None:
        kind, value, trace = sys.exc_info()
        self.kind: Any = kind
        self.text = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise it here, with torch's message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Verbatim(message))
        if getattr(self.kind, "message", None):
            raise self.kind(message=message)
        try:
            exception = self.kind(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception


class _Verbatim(str):
    """A KeyError's text that is shown as it is, not its repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def seed_worker(base_seed: int, number: int) -> int:
    """Seed this process's generators as torch does; returns the seed."""
    from flambeau.random.generator import default_generator

    seed = base_seed + number
    random.seed(seed)
    default_generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        words = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    return seed


def work(
    dataset: Any, indices: Any, results: Any, not_mine: list[Any], settings: dict[str, Any],
    base_seed: int, number: int, num_workers: int,
) -> None:  # fmt: skip
    """The life of worker `number`: messages (position, index) in, (position, batch) out."""
    global _worker_info
    for connection in not_mine:
        connection.close()
    from flambeau.base.config import CONFIG

    CONFIG.threads = 1
    seed = seed_worker(base_seed, number)
    _worker_info = WorkerInfo(number, num_workers, seed, dataset)
    try:
        _serve(dataset, _inbox(indices), results, settings, number)
    except (BrokenPipeError, ConnectionResetError, EOFError, KeyboardInterrupt):
        pass  # the parent is gone, or going
    finally:
        results.close()


def _inbox(indices: Any) -> queue.SimpleQueue[Any]:
    """Messages taken out of the pipe as they come, so that the parent never waits to send."""
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def receive() -> None:
        message: Any = None
        while message != STOP:
            try:
                message = indices.recv()
            except (EOFError, OSError):
                message = STOP
            inbox.put(message)

    threading.Thread(target=receive, daemon=True).start()
    return inbox


def _serve(
    dataset: Any, inbox: queue.SimpleQueue[Any], results: Any, settings: dict[str, Any], number: int
) -> None:
    parent = os.getppid()
    init = settings.pop("worker_init_fn")
    where = f"in DataLoader worker process {number}"
    failed: WorkerError | None = None
    fetcher: Any = None
    ended = False
    try:
        if init is not None:
            init(number)
        fetcher = fetch.fetcher(dataset, **settings)
    except Exception:
        failed = WorkerError(where)
    while True:
        try:
            message = inbox.get(timeout=CHECK_SECONDS)
        except queue.Empty:
            if os.getppid() != parent:
                return
            continue
        if message == STOP:
            return
        if message == RESUME:
            fetcher, ended = fetch.fetcher(dataset, **settings), False
            continue
        if ended:
            continue
        position, index = message
        data: Any
        if failed is not None:
            data, failed = failed, None
        else:
            try:
                data = fetcher.fetch(index)
            except StopIteration:
                data = Exhausted()
                ended = True
            except Exception:
                data = WorkerError(where)
        results.send_bytes(_packed(position, data, where))


def _packed(position: int, data: Any, where: str) -> bytes:
    """A message; what cannot be sent becomes the error that says so."""
    try:
        return transport.dumps((position, data))
    except Exception:
        return transport.dumps((position, WorkerError(where)))
