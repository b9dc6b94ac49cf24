"""torch.fft: where each function lives.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names
from flambeau.tensor.overriding.serving import served

_FILES: dict[str, tuple[str, ...]] = {
    "functions": (
        "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft",
        "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
    ),
    "frequencies": ("fftfreq", "fftshift", "ifftshift", "rfftfreq"),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}

__getattr__, __dir__ = lazy_names(
    __name__, _WHERE, served=lambda found, name: served(found, name, "torch.fft")
)
