"""Embeddings: rows of numbers as the files that tensorboard's projector reads.

Keeps     torch's files: tensors.tsv, metadata.tsv, sprite.png, projector_config.pbtxt.
Touches   the package tensorboard (its messages), NumPy, files under the log folder.
Not here  event files (writer.py)."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from flambeau.utils.tensorboard.summary import array_of, png_of


def written(
    folder: Any, rows: Any, labels: Any, pictures: Any, step: int, tag: str, heading: Any
) -> Any:
    """Write one embedding's files; returns its entry in the projector's list."""
    from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

    values = array_of(rows)
    if labels is not None and len(labels) != values.shape[0]:
        raise AssertionError("#labels should equal with #data points")
    if pictures is not None and len(pictures) != values.shape[0]:
        raise AssertionError("#images should equal with #data points")
    if values.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    place = f"{step:05}/{_as_folder(tag)}"
    target = Path(folder) / place
    target.mkdir(parents=True, exist_ok=True)
    entry = EmbeddingInfo(tensor_name=f"{tag}:{step:05}", tensor_path=f"{place}/tensors.tsv")
    _write_rows(target / "tensors.tsv", [[value.item() for value in row] for row in values])
    if labels is not None:
        entry.metadata_path = f"{place}/metadata.tsv"
        _write_labels(target / "metadata.tsv", labels, heading)
    if pictures is not None:
        shown = array_of(pictures)
        entry.sprite.image_path = f"{place}/sprite.png"
        entry.sprite.single_image_dim.extend([shown.shape[3], shown.shape[2]])
        (target / "sprite.png").write_bytes(png_of(_square(shown)))
    return entry


def listed(folder: Any, entries: list[Any]) -> None:
    """Write the projector's list."""
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    text = str(ProjectorConfig(embeddings=entries))  # a message prints as its text form
    (Path(os.fspath(folder)) / "projector_config.pbtxt").write_text(text, encoding="utf-8")


def _as_folder(tag: str) -> str:
    for character in "%/\\":
        tag = tag.replace(character, f"%{ord(character):02x}")
    return tag


def _write_rows(path: Path, rows: list[Any]) -> None:
    lines = ("\t".join(map(str, row)) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


def _write_labels(path: Path, labels: Any, heading: Any) -> None:
    if not heading:
        _write_rows(path, [[label] for label in labels])
        return
    if len(heading) != len(labels[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    _write_rows(path, [heading, *labels])


def _square(pictures: Any) -> Any:
    """Pictures (n, channels, height, width) of floats 0 to 1, row by row in one square of RGB."""
    import numpy as np

    count, channels, height, width = pictures.shape
    across = math.ceil(math.sqrt(count))
    whole = np.zeros((across * max(height, width), across * width, 3), np.uint8)
    shown = (pictures.astype(np.float64) * 255).clip(0, 255).astype(np.uint8)
    for number, picture in enumerate(shown):
        top, left = number // across * height, number % across * width
        coloured = picture if channels == 3 else picture[:1].repeat(3, axis=0)
        whole[top : top + height, left : left + width] = coloured.transpose(1, 2, 0)
    return whole
