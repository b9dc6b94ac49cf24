"""SummaryWriter: what a program logs, in files that tensorboard shows.

Keeps     the files are written by the package tensorboard; without it the constructor says so.
Touches   the package tensorboard (its file writer).
Not here  the messages (summary.py), the projector's files (embedding.py)."""

from __future__ import annotations

import os
import socket
import sys
import time
from datetime import datetime
from typing import Any, Self

from flambeau.base.errors import helped
from flambeau.utils.tensorboard import embedding, summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes messages to one event file."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "No module named 'tensorboard'\n"
                "  expected  the package that writes and shows the files\n"
                "  fix       pip install tensorboard",
                name="tensorboard",
            ) from error
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Folder of the file."""
        return self.event_writer.get_logdir()  # type: ignore[no-any-return]

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, found: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a summary."""
        from tensorboard.compat.proto import event_pb2

        self.add_event(event_pb2.Event(summary=found), global_step, walltime)

    def flush(self) -> None:
        """Let everything reach the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Let everything reach the file and close it."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Write to the file again."""
        self.event_writer.reopen()


class SummaryWriter:
    """Logs numbers, histograms, curves, text, pictures and embeddings under names and steps."""

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._embeddings: list[Any] = []
        self.default_bins = summary.default_bins()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        writer = self.file_writer
        if writer is None or self.all_writers is None:
            writer = self._made(self.log_dir)
            self.file_writer = writer
            self.all_writers = {writer.get_logdir(): writer}
            if self.purge_step is not None:
                self._purge(writer, self.purge_step)
                self.purge_step = None
        return writer

    def _made(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _purge(self, writer: FileWriter, step: int) -> None:
        from tensorboard.compat.proto import event_pb2

        writer.add_event(event_pb2.Event(step=step, file_version="brain.Event:2"))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        writer.add_event(event_pb2.Event(step=step, session_log=start))

    def get_logdir(self) -> Any:
        """Folder of the files."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None,
        walltime: float | None = None, new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Log a number."""
        found = summary.scalar(tag, scalar_value)
        self._get_file_writer().add_summary(found, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log several numbers to be shown together, each in a file of its own."""
        walltime = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            folder = f"{base}/{main_tag.replace('/', '_')}_{tag}"
            if self.all_writers is None:
                raise AssertionError("self.all_writers is None")
            if folder not in self.all_writers:
                self.all_writers[folder] = self._made(folder)
            found = summary.scalar(main_tag, value)
            self.all_writers[folder].add_summary(found, global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Log how values are spread."""
        found = summary.histogram(tag, values, bins, max_bins)
        self._get_file_writer().add_summary(found, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log Markdown."""
        found = summary.text(tag, text_string)
        self._get_file_writer().add_summary(found, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Log a picture."""
        found = summary.image(tag, img_tensor, dataformats)
        self._get_file_writer().add_summary(found, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log a matplotlib figure."""
        import numpy as np

        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        drawn = np.frombuffer(figure.canvas.buffer_rgba(), np.uint8).reshape((height, width, 4))
        self.add_image(tag, drawn, global_step, walltime, dataformats="HWC")
        if close:
            sys.modules["matplotlib.pyplot"].close(figure)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log precision against recall: labels 0 or 1, predictions from 0 to 1."""
        found = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(found, global_step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None,
        global_step: int | None = None, tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Log rows of numbers for the projector, with labels and pictures."""
        folder = self._get_file_writer().get_logdir()
        self._embeddings.append(
            embedding.written(folder, mat, metadata, label_img, global_step or 0, tag,
                              metadata_header)
        )  # fmt: skip
        embedding.listed(folder, self._embeddings)

    def add_graph(self, model: Any, input_to_model: Any = None, **named: Any) -> None:
        """Refused: there is no traced graph of a model to show."""
        raise NotImplementedError(
            helped(
                "add_graph() needs torch.jit's trace of the model, which flambeau does not make",
                fix='add_text("model", str(model))',
            )
        )

    def flush(self) -> None:
        """Let everything reach the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Let everything reach the files and close them."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
