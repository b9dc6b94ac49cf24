"""nextafter: neighbours in the result's own dtype, at every seam of the numbers."""

import math

import pytest

import flambeau as torch

INF = math.inf
SEAMS = {
    "float16": (2.0**-14, 2.0**-24, 65504.0, 2.0**-10),
    "bfloat16": (2.0**-126, 2.0**-133, 2.0**128 - 2.0**120, 2.0**-7),
    "float32": (2.0**-126, 2.0**-149, 2.0**128 - 2.0**104, 2.0**-23),
    "float64": (2.0**-1022, 2.0**-1074, 1.7976931348623157e308, 2.0**-52),
}


def after(one, two, dtype):
    pair = [torch.tensor([each], dtype=getattr(torch, dtype)) for each in (one, two)]
    return torch.nextafter(*pair).double().item()


@pytest.mark.parametrize("dtype", SEAMS)
def test_seams(dtype):
    normal, smallest, largest, epsilon = SEAMS[dtype]
    assert after(1.0, 2.0, dtype) == 1 + epsilon
    assert after(1.0, 0.0, dtype) == 1 - epsilon / 2
    assert after(0.0, 1.0, dtype) == smallest
    assert after(0.0, -1.0, dtype) == -smallest
    assert after(normal, 0.0, dtype) == normal - smallest
    assert after(normal - smallest, 1.0, dtype) == normal
    assert after(largest, INF, dtype) == INF
    assert after(INF, 0.0, dtype) == largest
    assert after(-INF, 0.0, dtype) == -largest


def test_equal_numbers_give_the_second():
    assert math.copysign(1, after(0.0, -0.0, "float32")) == -1
    assert math.isnan(after(math.nan, 1.0, "float32"))
    assert math.isnan(after(1.0, math.nan, "float32"))


def test_its_gradient_is_that_of_the_number_it_leaves():
    x = torch.ones(2, requires_grad=True)
    torch.nextafter(x, torch.tensor([0.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
