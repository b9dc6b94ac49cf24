"""Convolutions against their definition; the same bits for any threads, vectors, batch."""

from itertools import product as every

import pytest

import flambeau as torch
from flambeau import debug
from flambeau.nn import functional as F


def defined(image, weight, stride, padding, dilation, groups):
    """A convolution of two spatial dims, by loops over what it is defined by."""
    count, _, height, width = image.shape
    outputs, channels, tall, wide = weight.shape
    rows = (height + 2 * padding[0] - dilation[0] * (tall - 1) - 1) // stride[0] + 1
    columns = (width + 2 * padding[1] - dilation[1] * (wide - 1) - 1) // stride[1] + 1
    x, w = image.tolist(), weight.tolist()
    made = []
    for n, o, i, j in every(range(count), range(outputs), range(rows), range(columns)):
        first = o // (outputs // groups) * channels
        total = 0.0
        for c, p, q in every(range(channels), range(tall), range(wide)):
            row = i * stride[0] + p * dilation[0] - padding[0]
            column = j * stride[1] + q * dilation[1] - padding[1]
            if 0 <= row < height and 0 <= column < width:
                total += x[n][first + c][row][column] * w[o][c][p][q]
        made.append(total)
    return torch.tensor(made, dtype=image.dtype).reshape(count, outputs, rows, columns)


CASES = [
    ((2, 3, 6, 7), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 4, 9, 8), (6, 2, 3, 2), (2, 3), (0, 1), (2, 1), 2),
    ((3, 2, 5, 40), (2, 1, 2, 5), (1, 2), (1, 2), (1, 1), 2),
    ((1, 1, 3, 3), (1, 1, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    # Rows of whole vectors, and vectors that run on from row to row; one output a group.
    ((2, 3, 6, 16), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 2, 5, 32), (3, 2, 3, 1), (1, 1), (1, 0), (1, 1), 1),
    ((1, 3, 7, 9), (3, 1, 3, 3), (1, 1), (2, 0), (1, 2), 3),
    ((2, 4, 9, 19), (4, 1, 3, 3), (2, 2), (1, 1), (1, 1), 4),
    ((1, 2, 4, 22), (2, 1, 2, 3), (1, 3), (0, 1), (2, 1), 2),
    # So few places that the whole batch is one product.
    ((3, 2, 1, 1), (8, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 2, 4, 3), (9, 2, 2, 2), (2, 1), (0, 1), (1, 2), 1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
def test_values_and_gradients(case, dtype):
    shape, kernel, stride, padding, dilation, groups = case
    torch.manual_seed(1)
    image = (torch.randn(shape, dtype=torch.float64) * 3).to(dtype)
    weight = (torch.randn(kernel, dtype=torch.float64) * 3).to(dtype)
    expected = defined(image, weight, stride, padding, dilation, groups)
    found = F.conv2d(image, weight, None, stride, padding, dilation, groups)
    tolerance = 1e-4 if dtype is torch.float32 else 1e-10
    assert torch.allclose(found.double(), expected.double(), rtol=tolerance, atol=tolerance)
    if dtype is not torch.float64:
        return
    image.requires_grad_()
    weight.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups), (image, weight)
    )


def test_transposed_is_the_gradient():
    torch.manual_seed(2)
    image = torch.randn(2, 4, 7, 9, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 2, 3, 2, dtype=torch.float64)
    out = F.conv2d(image, weight, None, (2, 3), (1, 0), 1, 2)
    given = torch.randn_like(out)
    (expected,) = torch.autograd.grad(out, image, given)
    extra = (0, (9 - 2) % 3)
    found = F.conv_transpose2d(given, weight, None, (2, 3), (1, 0), extra, 2)
    assert torch.equal(found, expected)


def results(image, weight, groups=1):
    out = F.conv2d(image, weight, None, 1, 1, 1, groups)
    return [out, *torch.autograd.grad(out, (image, weight), torch.ones_like(out) * 0.37)]


@pytest.mark.parametrize("shape", [(5, 6, 12, 11), (2, 32, 20, 20), (9, 40, 1, 1)])
def test_bits_do_not_depend_on_threads_or_vectors(shape):
    torch.manual_seed(3)
    image = torch.randn(shape, requires_grad=True)
    weight = torch.randn(10, shape[1], 3, 3, requires_grad=True)
    expected = results(image, weight)
    alone = torch.randn(shape[1], 1, 3, 3, requires_grad=True)
    expected += results(image, alone, shape[1])
    for number in (1, 2, 3, 7):
        with debug.threads(number):
            found = results(image, weight) + results(image, alone, shape[1])
            for one, other in zip(expected, found, strict=True):
                assert torch.equal(one, other), number


@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 8, 9, 14, 16, 17, 24, 33])
def test_bits_do_not_depend_on_how_vectors_divide_rows(width):
    torch.manual_seed(6)
    image = torch.randn(3, 5, 6, width, requires_grad=True)
    weight = torch.randn(19, 5, 3, 3, requires_grad=True)
    alone = torch.randn(5, 1, 3, 3, requires_grad=True)
    found = []
    for bits in (256, 512):
        with debug.vector_bits(bits):
            made = results(image, weight) + results(image, alone, 5)
            found.append([each.tolist() for each in made])
    assert found[0] == found[1]


# The second: an image alone is few places, six are not.
@pytest.mark.parametrize(("shape", "outputs"), [((6, 8, 15, 13), 7), ((6, 8, 4, 4), 32)])
def test_an_image_does_not_depend_on_its_batch(shape, outputs):
    torch.manual_seed(4)
    image, weight = torch.randn(shape), torch.randn(outputs, 8, 3, 3)
    whole = F.conv2d(image, weight, None, 1, 1)
    back = F.conv_transpose2d(whole, weight, None, 1, 1)
    for n in range(6):
        assert torch.equal(F.conv2d(image[n : n + 1], weight, None, 1, 1)[0], whole[n])
        found = F.conv_transpose2d(whole[n : n + 1], weight, None, 1, 1)[0]
        assert torch.equal(found, back[n])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, w: F.conv2d(x[:, :2], w), "Given groups=1, weight of size"),
        (lambda x, w: F.conv2d(x, w, dilation=5), "Calculated padded input size per channel"),
        (lambda x, w: F.conv2d(x, w, stride=0), "non-positive stride is not supported"),
        (lambda x, w: F.conv2d(x, w, padding=-1), "negative padding is not supported"),
        (lambda x, w: F.conv2d(x, w, padding="same", stride=2), "padding='same' is not supported"),
        (lambda x, w: F.conv2d(x.double(), w), "expected scalar type Double but found Float"),
        (lambda x, w: F.conv2d(x, w, torch.ones(5)), "expected bias to be 1-dimensional with 4"),
        (lambda x, w: F.conv_transpose2d(x, torch.ones(3, 2, 3, 3), output_padding=1),
         "output padding must be smaller than either stride or dilation"),
    ],
)  # fmt: skip
def test_errors_are_torchs(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3))
