"""Readers and writers of divided checkpoints as files of safetensors: named, and not to be made.

Keeps     libraries that name them can be imported.
Touches   nothing.
Not here  whole files, which the package safetensors reads and writes."""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


def _refused(name: str) -> NoReturn:
    raise RuntimeError(
        helped(
            f"{name}: flambeau reads and writes no divided checkpoints",
            expected="the whole state: there is one process",
            fix="safetensors.torch.save_file(model.state_dict(), path), or torch.save",
        )
    )


class HuggingFaceStorageReader:
    """Raises: there are no divided checkpoints."""

    def __init__(self, path: str, *settings: Any, **named: Any) -> None:
        _refused("HuggingFaceStorageReader")


class HuggingFaceStorageWriter:
    """Raises: there are no divided checkpoints."""

    def __init__(self, path: str, *settings: Any, **named: Any) -> None:
        _refused("HuggingFaceStorageWriter")


__getattr__ = module_getattr(__name__)
