"""stft and istft against torch's recorded answers, their gradients and their refusals."""

import json
from pathlib import Path

import pytest

import flambeau as torch
from tests.recorded.short_time_cases import CASES, answers

RECORDED = Path(__file__).resolve().parents[1] / "recorded"

WANTED = json.loads((RECORDED / "short_time.json").read_text(encoding="utf-8"))


def test_values_are_torchs():
    given = answers(torch)
    assert list(given) == list(CASES)
    for text, (shape, numbers) in given.items():
        assert shape == WANTED[text][0], text
        assert numbers == pytest.approx(WANTED[text][1], rel=1e-11, abs=1e-11), text


def test_gradients():
    window = torch.hann_window(4, dtype=torch.float64)
    signal = torch.linspace(-1, 1, 9, dtype=torch.float64, requires_grad=True)

    def there_and_back(x):
        spectrum = torch.stft(x, 4, 1, window=window, return_complex=True)
        return torch.istft(spectrum * spectrum.abs(), 4, 1, window=window)

    assert torch.autograd.gradcheck(there_and_back, (signal,))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x, w: torch.stft(x, 8, window=w), "stft requires the return_complex parameter"),
        (
            lambda x, w: torch.stft(x, 28, 2, window=w, center=False, return_complex=True),
            r"stft\(torch.FloatTensor\[20\], .* : expected 0 < n_fft < 20, but got n_fft=28",
        ),
        (
            lambda x, w: torch.stft(x, 8, 2, 6, w, return_complex=True),
            "expected a 1D window tensor of size equal to win_length=6, but got window with size",
        ),
        (
            lambda x, w: torch.stft(x, 8, window=w, return_complex=True, align_to_window=True),
            "stft align_to_window should only be set when center = false",
        ),
        (
            lambda x, w: torch.istft(x, 8, window=w),
            "istft requires a complex-valued input tensor matching the output from stft",
        ),
        (
            lambda x, w: torch.istft(x.stft(8, 8, window=w, return_complex=True), 8, 8, window=w),
            r"istft\(CPUComplexFloatType\[5, 3\], .* window overlap add min: 1",
        ),
    ],
)
def test_refusals(call, says):
    with pytest.raises(RuntimeError, match=says):
        call(torch.ones(20), torch.hann_window(8))


def test_warnings():
    x, window = torch.ones(20), torch.hann_window(8)
    with pytest.warns(UserWarning, match="A window was not provided"):
        torch.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        assert torch.stft(x, 8, window=window, return_complex=False).shape == (5, 11, 2)
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        made = torch.istft(
            x.stft(8, window=window, return_complex=True), 8, window=window, length=25
        )
    assert made.shape == (25,)
    assert made[24] == 0
