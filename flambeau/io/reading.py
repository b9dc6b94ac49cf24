"""torch.load: PyTorch's files, through a closed list of types.

Keeps     no code of a file's is ever run; a file that is not whole raises before anything is
          returned.
Touches   archive.py, legacy.py.
Not here  the formats (archive.py, legacy.py), what files may hold (unpickler.py), where storages go
          (locations.py), writing (writing.py)."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
import zipfile
from typing import Any

from flambeau.base.errors import helped
from flambeau.io import safe_types
from flambeau.io.archive import MAGIC, load_archive
from flambeau.io.legacy import load_legacy
from flambeau.io.unpickler import unmade_names


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what torch.save (or `save`) wrote: tensors, state dicts and plain Python objects.

    f              a path, or a readable, seekable object
    map_location   where storages go: a device, a dict of devices, or a function of storage and
                   location that returns a storage or None
    weights_only   False: NumPy arrays, and modules and optimizers of classes that the program has,
                   are made, too; a file's own code is never run
    mmap           tensors are windows on the file; what is written to them stays in memory
    Raises   FileNotFoundError; RuntimeError: not a whole archive; pickle.UnpicklingError: the file
             asks for a type that is not on the list.
    """
    plain = safe_types.weights_only_now(
        weights_only if pickle_module is None else bool(weights_only)
    )
    if plain and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    options = {} if plain else pickle_load_args
    if plain and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    is_path = isinstance(f, (str, os.PathLike))
    if mmap and not is_path:
        raise ValueError(
            helped(
                "f must be a file path in order to use the mmap argument",
                given=f"a {type(f).__name__}",
            )
        )
    if is_path:
        with open(f, "rb") as file:
            return _loaded(file, map_location, plain, bool(mmap), options)
    if not (hasattr(f, "read") and hasattr(f, "seek") and hasattr(f, "tell")):
        raise AttributeError(
            helped(
                f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead.",
                given=f"a {type(f).__name__}",
                expected="a path, or an open file with read, seek and tell",
            )
        )
    return _loaded(f, map_location, plain, False, options)


def _loaded(
    file: Any, map_location: Any, plain: bool, is_mapped: bool, options: dict[str, Any]
) -> Any:
    start = file.tell()
    first = file.read(len(MAGIC))
    file.seek(start)
    if isinstance(first, str):
        raise TypeError(
            helped(
                "a bytes-like object is required, not 'str'",
                given="a file opened as text", fix='open(path, "rb")',
            )
        )  # fmt: skip
    if not first:
        raise EOFError(helped("Ran out of input", given="an empty file, or the end of one"))
    if first == MAGIC:
        whole = file if start == 0 else io.BytesIO(file.read())
        return load_archive(whole, map_location, plain, is_mapped, **options)
    if is_mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save("
            f"{file.name}, _use_new_zipfile_serialization=True), please torch.save your checkpoint "
            "with this option in order to use mmap."
        )
    return load_legacy(file, map_location, plain, **options)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Names of what a zip archive asks for and load() does not make with weights_only=True."""
    with contextlib.ExitStack() as files:
        file = files.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        start = file.tell()
        is_archive = file.read(len(MAGIC)) == MAGIC
        file.seek(start)
        if not is_archive:
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = files.enter_context(zipfile.ZipFile(file))
        (name,) = [each for each in archive.namelist() if each.endswith("data.pkl")][:1]
        return unmade_names(archive.read(name))
