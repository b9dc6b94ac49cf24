"""Conversions of eight-bit floats in fused loops: also on a CPU that takes tiny numbers for 0."""

import flambeau as torch
import flambeau.debug
from flambeau.base import dtypes


def test_the_same_bits_whatever_the_vector_width_and_fusion():
    x = torch.randn(1000) * torch.logspace(-12, 6, 1000, base=2.0)
    for of in dtypes.EIGHT_BITS:
        found = []
        for bits in (256, 512):
            for fuses in (True, False):
                with flambeau.debug.vector_bits(bits), flambeau.debug.fuse(fuses):
                    codes = (x * 2).to(of)
                    found.append((codes.view(torch.uint8).tolist(), (codes.double() + 1).tolist()))
        assert all(repr(each) == repr(found[0]) for each in found)


def test_tiny_numbers_survive_flushing():
    """A numeric mode of the CPU does not change what a byte stands for."""
    bytes_ = torch.arange(1, 8).to(torch.uint8)
    plain = bytes_.view(torch.float8_e5m2).float()
    assert plain.tolist()[:3] == [2.0**-16, 2.0**-15, 3 * 2.0**-16]
    assert plain.to(torch.float8_e5m2).view(torch.uint8).tolist() == bytes_.tolist()
