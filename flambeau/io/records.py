"""torch.PyTorchFileReader: the records of a file that torch.save wrote, as bytes.

Keeps     names are those within the archive; nothing is unpickled.
Touches   zipfile.
Not here  tensors of a file (reading.py)."""

from __future__ import annotations

import zipfile
from typing import Any

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records of a file, by name.

    name_or_buffer   a path, or a file that can be read and sought
    Raises           RuntimeError: no such archive, or no such record
    """

    def __init__(self, name_or_buffer: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(name_or_buffer)
        except (zipfile.BadZipFile, OSError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {error}"
            ) from error
        names = self._archive.namelist()
        self._folder = names[0].partition("/")[0] if names else ""

    def archive_name(self) -> str:
        """The folder that all records lie in."""
        return self._folder

    def get_all_records(self) -> list[str]:
        """Names of all records."""
        names = self._archive.namelist()
        return [name.removeprefix(f"{self._folder}/") for name in names]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return f"{self._folder}/{name}" in self._archive.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        if not self.has_record(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return self._archive.read(f"{self._folder}/{name}")
