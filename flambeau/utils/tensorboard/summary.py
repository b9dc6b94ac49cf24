"""Summaries: the messages of tensorboard's files for scalars, histograms, text and images.

Keeps     one message as torch writes it, whatever tensor, array or number is given.
Touches   the package tensorboard (its messages), NumPy.
Not here  files (writer.py)."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any


def messages() -> Any:
    """tensorboard's message classes."""
    from tensorboard.compat.proto import summary_pb2

    return summary_pb2


def array_of(value: Any) -> Any:
    """A number, tensor or array as a NumPy array."""
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def scalar(tag: str, value: Any) -> Any:
    """One number."""
    found = array_of(value).squeeze()
    if found.ndim != 0:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: "
                             f"{found.size} and {found.ndim} dimensions.")  # fmt: skip
    kinds = messages()
    return kinds.Summary(value=[kinds.Summary.Value(tag=tag, simple_value=float(found))])


def default_bins() -> list[float]:
    """Edges that grow by a tenth, on both sides of 0."""
    edges = []
    value = 1e-12
    while value < 1e20:
        edges.append(value)
        value *= 1.1
    return [-edge for edge in reversed(edges)] + [0.0] + edges


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """Counts of values in bins, empty ones at the ends left out."""
    import numpy as np

    flat = array_of(values).astype(np.float64).reshape(-1)
    if flat.size == 0:
        raise ValueError("The input has no element.")
    edges = default_bins() if bins == "tensorflow" else bins
    counts, limits = np.histogram(flat, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        padding = -len(counts) % step
        counts = np.pad(counts, (0, padding)).reshape(-1, step).sum(1)
        limits = np.append(limits[:-1][::step], limits[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    start, end = int(filled[0]), int(filled[-1]) + 1
    kept = counts[start - 1 : end] if start > 0 else np.concatenate([[0], counts[:end]])
    kinds = messages()
    made = kinds.HistogramProto(
        min=float(flat.min()), max=float(flat.max()), num=float(flat.size), sum=float(flat.sum()),
        sum_squares=float(flat.dot(flat)), bucket_limit=limits[start : end + 1].tolist(),
        bucket=kept.tolist(),
    )  # fmt: skip
    return kinds.Summary(value=[kinds.Summary.Value(tag=tag, histo=made)])


def pr_curve(
    tag: str, labels: Any, predictions: Any, n_thresholds: int = 127, weights: Any = None
) -> Any:
    """Counts of right and wrong answers, precision and recall, at evenly spaced thresholds."""
    from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2
    from tensorboard.plugins.pr_curve import plugin_data_pb2

    n_thresholds = min(n_thresholds, 127)
    table = _curve(array_of(labels), array_of(predictions), n_thresholds, weights)
    shape = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in table.shape]
    held = tensor_pb2.TensorProto(
        dtype="DT_FLOAT",
        float_val=table.reshape(-1).tolist(),
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=shape),
    )
    about = plugin_data_pb2.PrCurvePluginData(version=0, num_thresholds=n_thresholds)
    kinds = messages()
    metadata = kinds.SummaryMetadata(
        plugin_data=kinds.SummaryMetadata.PluginData(
            plugin_name="pr_curves", content=about.SerializeToString()
        )
    )
    return kinds.Summary(value=[kinds.Summary.Value(tag=tag, metadata=metadata, tensor=held)])


def _curve(labels: Any, predictions: Any, n_thresholds: int, weights: Any) -> Any:
    """Rows: true and false positives, true and false negatives, precision, recall."""
    import numpy as np

    scale = 1.0 if weights is None else array_of(weights).reshape(-1)
    truth = labels.astype(np.float64).reshape(-1)
    # The last threshold that each prediction reaches.
    reached = np.floor(predictions.reshape(-1) * (n_thresholds - 1)).astype(np.int64)
    is_inside = (reached >= 0) & (reached < n_thresholds)

    def at_least(counted: Any) -> Any:
        counts = np.bincount(reached[is_inside], (counted * scale)[is_inside], n_thresholds)
        return counts[::-1].cumsum()[::-1]

    hits, alarms = at_least(truth), at_least(1.0 - truth)
    misses, rejections = hits[0] - hits, alarms[0] - alarms
    precision = hits / np.maximum(1e-7, hits + alarms)
    recall = hits / np.maximum(1e-7, hits + misses)
    return np.stack((hits, alarms, rejections, misses, precision, recall))


def text(tag: str, content: str) -> Any:
    """A piece of Markdown."""
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    kinds = messages()
    data = kinds.SummaryMetadata.PluginData(plugin_name="text")
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(
        dtype="DT_STRING", string_val=[content.encode("utf-8")], tensor_shape=shape
    )
    value = kinds.Summary.Value(
        tag=f"{tag}/text_summary", metadata=kinds.SummaryMetadata(plugin_data=data), tensor=tensor
    )
    return kinds.Summary(value=[value])


def image(tag: str, picture: Any, dataformats: str) -> Any:
    """A picture of bytes 0 to 255, or of floats 0 to 1."""
    import numpy as np

    found = array_of(picture)
    if found.ndim != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {found.shape}, "
            f"input_format: {dataformats}"
        )
    letters = dataformats.upper()
    if "C" not in letters:
        found, letters = found[..., None], letters + "C"
    rows = found.transpose([letters.index(letter) for letter in "HWC"])
    if rows.shape[-1] == 1:
        rows = rows.repeat(3, axis=-1)
    if rows.dtype != np.uint8:
        rows = (rows.astype(np.float32) * 255.0).clip(0, 255).astype(np.uint8)
    height, width, channels = rows.shape
    kinds = messages()
    made = kinds.Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=png_of(rows)
    )
    return kinds.Summary(value=[kinds.Summary.Value(tag=tag, image=made)])


def png_of(rows: Any) -> bytes:
    """Rows of RGB or RGBA bytes as a PNG file."""
    height, width, channels = rows.shape
    lines = io.BytesIO()
    for row in rows:
        lines.write(b"\0" + row.tobytes())
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.getvalue())), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
