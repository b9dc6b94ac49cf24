"""Calls taken apart: numbers among the operands, names and orders of arguments, what is refused."""

import re

import numpy as np
import pytest

import flambeau as torch
from flambeau.nn.functional import max_pool2d, pad


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**70])
def test_integers_beyond_64_bits_are_refused_everywhere(number):
    """torch's class and words, whoever reads the number first, and again when the way is known."""
    whole, real = torch.ones(2, dtype=torch.int64), torch.ones(2)
    calls = [
        lambda: whole + number, lambda: number - whole, lambda: real * number, lambda: real**number,
        lambda: real.add_(number), lambda: torch.where(whole > 0, whole, number),
        lambda: real.clamp(number),
    ]  # fmt: skip
    for _ in range(3):
        for call in calls:
            with pytest.raises(OverflowError, match="int too big to convert"):
                call()
    assert (whole + (2**63 - 1)).tolist() == [-(2**63)] * 2
    assert real.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda n: torch.tensor([1, 2]) * n, [-(2**63), 0]),
        (lambda n: torch.tensor([1, 2]) + (2 * n - 1), [0, 1]),
        (lambda n: torch.tensor([1, 2], dtype=torch.uint8) + (n + 5), [6, 7]),
        (lambda n: n - torch.tensor([1]), [2**63 - 1]),
        (lambda n: n // torch.tensor([2]), [-(2**62)]),
        (lambda n: torch.tensor([-1]) == 2 * n - 1, [True]),
        (lambda n: torch.tensor([1.5]) * n, [1.5 * 2.0**63]),
        (lambda n: torch.ones(1).add_(n), [2.0**63]),
        (lambda n: torch.tensor([1]) / n, [2.0**-63]),
        (lambda n: torch.zeros(1).fill_(n), [2.0**63]),
        (lambda n: torch.full((1,), n, dtype=torch.bool), [True]),
        (lambda n: torch.where(torch.tensor([True]), n, torch.ones(1)), [2.0**63]),
    ],
)
def test_integers_of_64_bits_without_a_sign(call, expected):
    """Floating tensors round them, integers take their low bits, as torch's."""
    for _ in range(3):
        assert call(2**63).tolist() == expected


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.tensor([True]) + 2**63, "attempted to promote Bool and UInt64"),
        (
            lambda: torch.zeros(1, dtype=torch.int64).fill_(2**63),
            "int64_t without overflow",
        ),
        (lambda: torch.tensor([1]).clamp(max=2**63), "int64_t without overflow"),
    ],
)
def test_integers_of_64_bits_that_a_dtype_cannot_hold(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_numpys_names_of_arguments():
    ones = torch.ones(2, 3)
    assert torch.sqrt(x=ones).sum(axis=0, keepdims=True).shape == (1, 3)
    assert torch.add(x1=ones, x2=ones).tolist() == (ones * 2).tolist()
    assert torch.max(ones, axis=1, keepdims=True).indices.shape == (2, 1)


def test_numbers_among_the_tensors():
    """torch's older signatures, which old optimizers are written in."""
    ones = torch.ones(1, 1)
    assert torch.add(ones, 2, ones).item() == 3
    assert ones.clone().add_(-0.5, ones).item() == 0.5
    assert ones.clone().addcmul_(0.5, ones, ones).item() == 1.5
    assert torch.addmm(2, ones, 3, ones, ones).item() == 5
    assert ones.addmm(2, ones, ones).item() == 3


@pytest.mark.parametrize("other", [None, [1.0], (1.0,)])
@pytest.mark.parametrize("name", ["+", "-", "/", "//", "%", "**", "&", "<<"])
def test_operators_leave_alone_what_they_do_not_know(name, other):
    for text in (f"a {name} b", f"b {name} a", f"a {name}= b"):
        with pytest.raises(TypeError, match=r"unsupported operand type|can only concatenate"):
            exec(text, {"a": torch.ones(2, dtype=torch.int64), "b": other})


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: torch.sqrt(), 'sqrt() missing 1 required positional arguments: "input"'),
        (lambda a: torch.softmax(a, None), "argument 'dim' (position 2) must be int, not NoneType"),
        (lambda a: torch.softmax(a, dim=(0,)), "softmax(): argument 'dim' must be int, not tuple"),
        (lambda a: torch.topk(a, 2.0), "topk(): argument 'k' (position 2) must be int, not float"),
        (lambda a: torch.argmax(a, dim=[0]), "argmax(): argument 'dim' must be int, not list"),
        (lambda a: torch.flip(a, 1.0), "argument 'dims' (position 2) must be tuple of ints, not f"),
        (lambda a: a.split((1, 1.0)), "'split_sizes' failed to unpack the object at pos 2 with"),
        (lambda a: pad(a, (1, 2.5)), "pad(): argument 'pad' failed to unpack the object at pos 2"),
        (lambda a: max_pool2d(a, (2, 2.5)), "'kernel_size' failed to unpack the object at pos 2"),
    ],
)
def test_arguments_of_other_types(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call(torch.ones(2, 3))


def test_out_of_another_dtype_or_shape():
    ones = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.neg(ones, out=torch.empty(0, dtype=torch.float64))
    assert torch.exp(ones.t(), out=torch.empty(0)).stride() == (1, 3)
    found = torch.topk(ones, 2, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
    assert type(found).__name__ == "topk_out"
    assert torch.all(ones, 0, out=torch.empty(0, dtype=torch.uint8)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: torch.eq(a), "received an invalid combination of arguments - got (Tensor), "),
        (lambda a: torch.eq(a, foo=1), "of arguments - got (Tensor, foo=int), but"),
        (lambda a: torch.nextafter(a, np.float64(1)), "must be Tensor, not numpy.float64"),
        (lambda a: torch.add(a, a, alpha=None), "argument 'alpha' must be Number, not NoneType"),
        (lambda a: ~a, "~ (operator.invert) is only implemented on integer and Boolean"),
        (lambda a: torch.meshgrid([1], indexing="ij"), "expected Tensor as element 0 in arg"),
    ],
)  # fmt: skip
def test_calls_that_no_signature_fits(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call(torch.ones(2, 3))


@pytest.mark.parametrize("write", [
    lambda a: a.bitwise_and_(2.5), lambda a: torch.remainder(a, 1.5j, out=a), lambda a: a.mul_(1j),
])  # fmt: skip
def test_that_a_result_does_not_fit_is_said_before_that_there_is_no_kernel(write):
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        write(torch.ones(2, dtype=torch.int64))


@pytest.mark.parametrize("name", ["is_leaf", "T", "dtype", "grad_fn"])
def test_properties_that_are_not_written(name):
    with pytest.raises(AttributeError, match=f"attribute '{name}' of .* objects is not writable"):
        setattr(torch.ones(2), name, None)


@pytest.mark.parametrize(
    ("equation", "expected"),
    [("ij->ji", (1, 3)), ("ij", (3, 1)), ("ji", (1, 3))],
)
def test_einsum_of_one_tensor_that_sums_nothing_is_a_view(equation, expected):
    given = torch.arange(6.0).reshape(2, 3).requires_grad_()
    seen = torch.einsum(equation, given)
    assert seen.stride() == expected
    assert seen.data_ptr() == given.data_ptr()
    square = torch.arange(9.0).reshape(3, 3)
    assert torch.einsum("ii->i", square).stride() == (4,)


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("ii", "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
        ("1j", "invalid subscript given at index 0 in the equation string"),
        ("ij..->ij", "found '.' for operand 0 that is not part of any ellipsis"),
        ("...ijk", "the number of subscripts in the equation (3) is more than the number of dim"),
    ],
)
def test_equations_that_einsum_refuses(equation, text):
    with pytest.raises(RuntimeError, match=re.escape(text)):
        torch.einsum(equation, torch.ones(2, 3))


def test_names_in_place_count_from_the_tensor_on():
    given = torch.ones(2)
    for call, text in [
        (lambda: given.copy_("x"), "copy_(): argument 'other' (position 1) must be Tensor, not"),
        (lambda: given.nextafter_(1.0), "nextafter_(): argument 'other' (position 1) must be Te"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=re.escape(text)):
            call()


def test_numbers_are_copied():
    assert torch.zeros(2, dtype=torch.uint8).copy_(300).tolist() == [44, 44]
    assert torch.zeros(2, dtype=torch.int64).copy_(2.7).tolist() == [2, 2]


def test_a_weight_without_dims_is_a_number():
    half = torch.tensor([1.0, 3.0], dtype=torch.float16)
    made = torch.lerp(half, half * 3, torch.tensor(0.5))
    assert (made.tolist(), made.dtype) == ([2.0, 6.0], torch.float16)
    with pytest.raises(RuntimeError, match="expected dtype c10::Half for `weight`"):
        torch.lerp(half, half, torch.tensor([0.5]))


def test_gradients_of_strides_over_repeated_complex_elements():
    given = torch.ones(1, 2, dtype=torch.complex64, requires_grad=True)
    seen = torch.as_strided(given.expand(3, 2), (2,), (1,))
    (grad,) = torch.autograd.grad(seen.real.sum(), given)
    assert grad.tolist() == [[1, 1]]


def test_out_where_gradients_are_recorded():
    given, out = torch.ones(2, 3, requires_grad=True), torch.zeros(2, 3)
    with torch.no_grad():
        assert torch.add(given, 1, out=out) is out
        torch.add(out, 1, out=given)
    assert given.tolist() == [[3.0] * 3] * 2
    assert torch.eq(given, 3, out=torch.zeros(2, 3, dtype=torch.bool)).all()
    assert torch.argmax(given, 0, out=torch.zeros(3, dtype=torch.int64)).tolist() == [0, 0, 0]
    for call in (lambda: torch.bmm(given, given, out=out), lambda: torch.add(out, 1, out=given)):
        with pytest.raises(RuntimeError, match=r"functions with out=\.\.\. arguments"):
            call()
