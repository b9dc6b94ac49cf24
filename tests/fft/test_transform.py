"""Transforms of every kind of length, against the definition; gradients."""

import math

import pytest

import flambeau as torch
from flambeau.fft import transform


def defined(x):
    n = x.shape[-1]
    places = torch.arange(n, dtype=torch.int64)
    angle = (places[:, None] * places % n).double() * (-2 * math.pi / n)
    return x @ torch.complex(angle.cos(), angle.sin())


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 65, 67, 96, 128, 134, 243, 512])
def test_every_kind_of_length(n):
    torch.manual_seed(n)
    x = torch.complex(torch.randn(2, n).double(), torch.randn(2, n).double())
    assert torch.allclose(torch.fft.fft(x), defined(x), atol=1e-10)
    assert torch.allclose(torch.fft.ifft(torch.fft.fft(x)), x, atol=1e-12)


def test_long_transforms_keep_no_tables():
    for n in (8192, 5003):
        x = torch.randn(n, dtype=torch.float64)
        assert torch.allclose(torch.fft.irfft(torch.fft.rfft(x), n), x, atol=1e-11)
        kept = transform._kept_turns.cache_info().currsize
        torch.fft.rfft(x)
        assert transform._kept_turns.cache_info().currsize == kept


@pytest.mark.parametrize("n", [5, 6, 67])
def test_gradients(n):
    x = torch.randn(n, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.view_as_real(torch.fft.rfft(x)), (x,))
    assert torch.autograd.gradcheck(lambda x: torch.fft.irfft(torch.fft.fft(x), n), (x,))


def test_the_same_bits_fused_or_not():
    x = torch.randn(3, 210)
    fused = torch.fft.fft(x)
    with torch.debug.fuse(False):
        plain = torch.fft.fft(x)
        assert torch.equal(fused, plain)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 67])
def test_transforms_of_real_signals_are_mirror_images(n):
    """Exactly, the signs of zeros included: the second half is made of the first."""
    signal = torch.arange(n, dtype=torch.float64)
    forward, back = torch.fft.fft(signal), torch.fft.ifft(signal)
    places = [k for k in range(1, n) if 2 * k != n]
    for found in (forward, back):
        assert found[places].tolist() == found[[n - k for k in places]].conj().tolist()
    zeros = [each[0].imag.item() for each in (forward, back, torch.fft.ihfft(signal))]
    assert n > 64 or list(map(str, zeros)) == ["0.0", "-0.0", "-0.0"]
