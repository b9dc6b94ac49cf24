"""torch.nn.attention: the choice of kernels is remembered and changes no bit."""

import pytest

import flambeau as torch
from flambeau.backends import cuda
from flambeau.nn.attention import SDPBackend, sdpa_kernel


def test_choice_holds_for_the_block():
    q = torch.randn(1, 2, 5, 8)
    attention = torch.nn.functional.scaled_dot_product_attention
    outside = attention(q, q, q, is_causal=True)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION]):
        assert cuda.math_sdp_enabled()
        assert cuda.cudnn_sdp_enabled()
        assert not cuda.flash_sdp_enabled()
        with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            assert not cuda.math_sdp_enabled()
        assert cuda.math_sdp_enabled()
        assert torch.equal(attention(q, q, q, is_causal=True), outside)
    assert cuda.flash_sdp_enabled()


def test_mistakes():
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPB"):
        sdpa_kernel("math").__enter__()
