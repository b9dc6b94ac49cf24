"""frexp: mantissas and exponents as C's frexp has them, in every format, and their gradient."""

import math

import pytest

import flambeau as torch

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_kind_of_number(dtype):
    info = torch.finfo(dtype)
    ends = [info.max, -info.max, info.tiny, -info.tiny, info.tiny / 2, info.tiny * info.eps]
    x = torch.tensor([0.0, -0.0, 1.0, -3.5, 0.75, 6.0, *ends], dtype=dtype)
    mantissa, exponent = torch.frexp(x)
    assert (mantissa.dtype, exponent.dtype) == (dtype, torch.int32)
    wanted = [math.frexp(value) for value in x.tolist()]
    assert list(zip(mantissa.tolist(), exponent.tolist(), strict=True)) == wanted
    assert torch.signbit(mantissa).tolist() == torch.signbit(x).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_has_no_exponent(dtype):
    found = torch.tensor([math.inf, -math.inf, math.nan], dtype=dtype).frexp()
    assert found.mantissa[:2].tolist() == [math.inf, -math.inf]
    assert found.mantissa[2].isnan()
    assert found.exponent.tolist() == [0, 0, 0]


def test_gradient_is_of_the_mantissa():
    x = torch.tensor([3.0, -5.0], requires_grad=True)
    torch.frexp(x).mantissa.sum().backward()
    assert x.grad.tolist() == [0.25, 0.125]


def test_layouts_and_out():
    x = torch.tensor([[4.0, 3.0], [2.0, 1.0]]).T
    out = (torch.empty(2, 2), torch.empty(2, 2, dtype=torch.int32))
    torch.frexp(x, out=out)
    assert torch.ldexp(*out).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"torch.frexp\(\) only supports floating-point dtypes"):
        torch.frexp(torch.ones(2, dtype=torch.int64))
