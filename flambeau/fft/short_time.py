"""stft and istft: the spectra of a signal's overlapping frames, and the signal of such spectra.

Keeps     torch's arguments and layout, frequencies before frames; frames are views of the signal.
Touches   functions.py, nn.functional (pad, fold).
Not here  the transform of one frame (transform.py), windows (signal/windows.py)."""

from __future__ import annotations

import warnings
from typing import Any, Final

from flambeau.fft import functions as spectra
from flambeau.nn import functional
from flambeau.ops.define import type_name
from flambeau.tensor import functions as t
from flambeau.tensor.public import fills

# Frames whose squared windows add up to less cannot be divided by that.
_LEAST_OVERLAP: Final = 1e-11


def _numbers(**settings: Any) -> str:
    return ", ".join(
        f"{name}={int(each) if isinstance(each, bool) else each}" for name, each in settings.items()
    )


def _described(window: Any) -> str:
    if window is None:
        return "None"
    return f"torch.{type_name(window._layout)}Tensor{{{list(window.shape)}}}"


def _padded_window(window: Any, win_length: int, n_fft: int) -> Any:
    """The window in the middle of a frame, zeros around."""
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    return functional.pad(window, (left, n_fft - win_length - left))


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """Spectra of frames `n_fft` long and `hop_length` apart: (..., frequencies, frames).

    Raises   RuntimeError: sizes that do not fit, no word on return_complex for real signals."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        input = _reflected(input, n_fft // 2, pad_mode)
    elif align_to_window:  # the first window, not the first frame, starts with the signal
        left = (n_fft - width) // 2
        input = functional.pad(input, (left, left))
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    elif not return_complex:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will "
            "return complex tensors for all inputs, and return_complex=False will raise an error.",
            stacklevel=2,
        )
    settings = _numbers(
        n_fft=n_fft, hop_length=hop, win_length=width, window=_described(window),
        normalized=normalized, onesided=onesided, return_complex=return_complex,
        align_to_window=align_to_window,
    )  # fmt: skip
    kind = f"torch.{type_name(input._layout)}Tensor{list(input.shape)}"
    _check(f"stft({kind}, {settings})", input, n_fft, hop, width, window)
    is_half = not is_complex if onesided is None else onesided
    if is_half and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = input.unfold(-1, n_fft, hop)
    if window is not None or width < n_fft:
        frames = frames * _padded_window(_or_ones(window, width, input), width, n_fft)
    transform = spectra.rfft if is_half else spectra.fft
    found = transform(frames, norm="ortho" if normalized else None).transpose(-1, -2)
    return found if return_complex else t.view_as_real(found)


def _or_ones(window: Any, width: int, input: Any) -> Any:
    if window is not None:
        return window
    return fills.ones(width, dtype=input.dtype.to_real(), device=input.device)


def _reflected(input: Any, amount: int, mode: str) -> Any:
    """The signal with `amount` places more on both sides."""
    extra = max(0, 3 - input.dim())
    batched = input.reshape((1,) * extra + tuple(input.shape))
    padded = functional.pad(batched, (amount, amount), mode)
    return padded.reshape(tuple(padded.shape)[extra:])


def _check(call: str, input: Any, n_fft: int, hop: int, width: int, window: Any) -> None:
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied,which is known to "
            "cause spectral leakage. Other windows such as torch.hann_window or "
            "torch.hamming_window are recommended to reduce spectral leakage.To suppress this "
            "warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
            "device=<device>)`.",
            stacklevel=3,
        )
    size = input.shape[-1] if input.dim() else 0
    if not (input.is_floating_point() or input.is_complex()):
        wrong = "expected a tensor of floating point or complex values"
    elif input.dim() not in (1, 2):
        wrong = "expected a 1D or 2D tensor"
    elif not 0 < n_fft <= size:
        wrong = f"expected 0 < n_fft < {size}, but got n_fft={n_fft}"
    elif hop <= 0:
        wrong = f"expected hop_length > 0, but got hop_length={hop}"
    elif not 0 < width <= n_fft:
        wrong = f"expected 0 < win_length <= n_fft, but got win_length={width}"
    elif window is not None and tuple(window.shape) != (width,):
        wrong = (
            f"expected a 1D window tensor of size equal to win_length={width}, but got window "
            f"with size {list(window.shape)}"
        )
    else:
        return
    raise RuntimeError(f"{call} : {wrong}")


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal nearest to the spectra that stft would have given, by least squares.

    Raises   RuntimeError: sizes that do not fit, windows that leave places out."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    settings = _numbers(
        n_fft=n_fft, hop_length=hop, win_length=width, window=_described(window), center=center,
        normalized=normalized, onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip
    call = f"istft(CPU{type_name(input._layout)}Type{list(input.shape)}, {settings})"
    is_half = input.shape[-2] != n_fft if onesided is None else onesided
    _check_spectra(call, input, n_fft, hop, width, window, is_half)
    if return_complex and is_half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    weights = _padded_window(_or_ones(window, width, input), width, n_fft)
    norm = "ortho" if normalized else None
    rows = input.transpose(-1, -2)
    if return_complex:
        frames = spectra.ifft(rows, norm=norm)
    else:  # the other half, where it is given, is not read
        frames = spectra.irfft(rows[..., : n_fft // 2 + 1], n_fft, norm=norm)
    whole = _added(frames * weights, hop)
    squares = (weights * weights).expand(1, input.shape[-1], n_fft)
    overlap = _added(squares, hop)
    start = n_fft // 2 if center else 0
    end = whole.shape[-1] - start if length is None else min(start + length, whole.shape[-1])
    whole, overlap = whole[..., start:end], overlap[0, start:end]
    if overlap.abs().min().item() <= _LEAST_OVERLAP:
        raise RuntimeError(f"{call} window overlap add min: 1")
    found = whole / overlap
    found = found[0] if input.dim() == 2 else found
    if length is not None and length > end - start:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings.",
            stacklevel=2,
        )
        found = functional.pad(found, (0, length - (end - start)))
    return found


def _check_spectra(
    call: str, input: Any, n_fft: int, hop: int, width: int, window: Any, is_half: bool
) -> None:
    wanted = n_fft // 2 + 1 if is_half else n_fft
    if not input.numel():
        wrong = "input tensor cannot be empty."
    elif input.dim() not in (2, 3):
        wrong = f"expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}"
    elif input.shape[-2] != wanted:
        wrong = (
            "expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"n_fft{' / 2 + 1' if is_half else ''} when onesided={is_half}, but got "
            f"{input.shape[-2]}"
        )
    elif not 0 < hop <= width:
        wrong = "expected 0 < hop_length <= win_length"
    elif not 0 < width <= n_fft:
        wrong = "expected 0 < win_length <= n_fft"
    elif window is not None and tuple(window.shape) != (width,):
        wrong = "Invalid window shape. window has to be 1D and length of `win_length`"
    else:
        return
    raise RuntimeError(f"{call} : {wrong}")


def _added(frames: Any, hop: int) -> Any:
    """(batch, place) sums of frames `hop` places apart, from (..., frame, place in it)."""
    if frames.is_complex():
        return t.complex(_added(frames.real, hop), _added(frames.imag, hop))
    rows = frames.reshape(-1, *frames.shape[-2:]).transpose(1, 2)
    n_fft, count = rows.shape[1:]
    size = (1, (count - 1) * hop + n_fft)
    return functional.fold(rows, size, (1, n_fft), stride=(1, hop)).reshape(-1, size[1])
