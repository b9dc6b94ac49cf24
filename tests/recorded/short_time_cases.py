"""Calls of stft and istft as text, run under torch and under flambeau.

Keeps     x is a float64 signal of 30 places, z a complex one, w a window of 8, v one of 6.
Touches   whichever module is given as `torch`.
Not here  recording (record_short_time.py), comparing (tests/fft/test_short_time.py)."""

SPECTRA = (
    "torch.stft(x, 8, window=w, return_complex=True)",
    "torch.stft(x, 8, 3, window=w, center=False, return_complex=True)",
    "torch.stft(x, 8, 2, 6, v, pad_mode='constant', return_complex=True)",
    "torch.stft(x, 8, 2, window=w, normalized=True, onesided=False, return_complex=True)",
    "torch.stft(x, 8, 2, 6, v, center=False, align_to_window=True, return_complex=True)",
    "torch.stft(z, 8, 2, window=w)",
    "x.reshape(2, 15).stft(7, 2, 6, v, return_complex=True)",
)
SIGNALS = (
    "torch.istft({0}, 8, window=w)",
    "torch.istft({2}, 8, 2, 6, v, length=27)",
    "torch.istft({3}, 8, 2, window=w, normalized=True, onesided=False)",
    "torch.istft({5}, 8, 2, window=w, return_complex=True)",
    "{6}.istft(7, 2, 6, v)",
    "torch.istft({1}, 8, 3, window=w + 0.1, center=False)",
)
CASES = SPECTRA + tuple(text.format(*SPECTRA) for text in SIGNALS)


def answers(torch):
    """{call: [shape, flat numbers, complex ones as pairs]}."""
    x = torch.arange(30, dtype=torch.float64)
    x = (x * x) % 7 - x / 5
    scope = {
        "torch": torch,
        "x": x,
        "z": torch.complex(x, x.flip(0)),
        "w": torch.signal.windows.hann(8, sym=False, dtype=torch.float64),
        "v": torch.signal.windows.hamming(6, dtype=torch.float64),
    }
    found = {}
    for text in CASES:
        made = eval(text, scope)
        parts = torch.view_as_real(made) if made.is_complex() else made
        found[text] = [list(made.shape), parts.reshape(-1).tolist()]
    return found
