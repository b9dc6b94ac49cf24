"""torch.fft: where each function lives.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

_FILES: dict[str, tuple[str, ...]] = {
    "functions": (
        "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft",
        "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
    ),
    "frequencies": ("fftfreq", "fftshift", "ifftshift", "rfftfreq"),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise missing_name(__name__, name, __dir__())
    found = getattr(import_module(f"flambeau.fft.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)
