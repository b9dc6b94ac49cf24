"""Broadcasting, strides of results, dims of reductions: torch's answers and sentences."""

import itertools

import pytest
from rules_support import RULES, laid_out

from flambeau.base import dtypes, shapes
from flambeau.base.devices import META
from flambeau.base.layout import contiguous, layout


def test_layouts_of_elementwise_results():
    """Shape and strides follow the operands as in TensorIterator."""
    for operands, result, _ in RULES["layouts"]:
        layouts = tuple(laid_out(each) for each in operands)
        found = shapes.elementwise_layout(layouts, dtypes.float32)
        assert [list(found.shape), list(found.strides)] == result, operands


def test_elements_that_share_memory():
    """Never said to be apart where two are one place; apart in any order and steps of dims."""
    n_apart = 0
    for shape in itertools.product((1, 2, 3), repeat=3):
        for strides in itertools.product((0, 1, 2, 3, 6, 9), repeat=3):
            places = [
                sum(at * step for at, step in zip(index, strides, strict=True))
                for index in itertools.product(*map(range, shape))
            ]
            if not layout(shape, strides, dtypes.float32).may_overlap:
                assert len(set(places)) == len(places), (shape, strides)
                n_apart += 1
    assert n_apart > 500
    for shape, strides in (((4, 5, 6), (1, 4, 20)), ((3, 1, 2), (4, 0, 2)), ((0, 3), (1, 0))):
        assert not layout(shape, strides, dtypes.float32).may_overlap


def test_layouts_of_empty_copies():
    """preserve_format keeps strides that are dense, and the order of dims otherwise."""
    for operands, _, copied in RULES["layouts"]:
        assert list(shapes.like_strides(laid_out(operands[0]))) == copied[1], operands[0]


@pytest.mark.parametrize(
    ("left", "right", "sizes", "dim"),
    [((2, 3), (2, 4), (3, 4), 1), ((3,), (4,), (3, 4), 0), ((5, 1, 3), (4, 2), (3, 2), 2)],
)
def test_shapes_that_do_not_broadcast(left, right, sizes, dim):
    """torch's sentence first, then what was given."""
    with pytest.raises(RuntimeError) as caught:
        shapes.broadcast_shapes(left, right)
    assert str(caught.value).startswith(
        f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) at "
        f"non-singleton dimension {dim}\n"
    )
    assert f"{list(left)} and {list(right)}" in str(caught.value)


def test_advice_where_leading_dims_would_fit():
    """The fix names the operand that needs dims behind."""
    with pytest.raises(RuntimeError, match=r"b\[\.\.\., None\]"):
        shapes.broadcast_shapes((2, 3), (2,))


def test_broadcasting():
    """Sizes of 1 and missing dims stretch, also to 0."""
    assert shapes.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert shapes.broadcast_shapes((1,), (0,)) == (0,)


def test_devices_must_agree():
    """A CPU tensor without dims goes with any device; one with dims does not."""
    there, here = contiguous((3,), dtypes.float32, META), contiguous((3,), dtypes.float32)
    single = contiguous((), dtypes.float32)
    assert shapes.common_device((single, there)) is META
    assert shapes.common_device((there, single)) is META
    with pytest.raises(RuntimeError) as caught:
        shapes.common_device((here, there))
    assert str(caught.value).startswith(
        "Expected all tensors to be on the same device, but found at least two devices, cpu and "
        "meta!"
    )


def test_dims_are_wrapped():
    """Negative dims count from the end; a tensor without dims takes 0 and -1."""
    assert [shapes.wrap_dim(dim, 3) for dim in (0, -1, 2)] == [0, 2, 2]
    assert shapes.wrap_dim(-1, 0) == 0
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        shapes.wrap_dim(2, 2)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        shapes.wrap_dims((0, -2), 2)


def test_reduced_dims_and_shapes():
    """None and () mean all dims."""
    cube = contiguous((2, 3, 4), dtypes.float32)
    assert shapes.reduced_dims(cube, None) == (0, 1, 2)
    assert shapes.reduced_dims(cube, ()) == (0, 1, 2)
    assert shapes.reduced_dims(cube, (-1, 0)) == (0, 2)
    assert shapes.reduced_shape((2, 3, 4), (0, 2), False) == (3,)
    assert shapes.reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)


def test_unknown_sizes():
    """-1 is worked out, and torch's errors where it cannot be."""
    assert shapes.infer_size((2, -1), 6) == (2, 3)
    for shape, count, sentence in (
        ((2, 5), 6, r"shape '\[2, 5\]' is invalid for input of size 6"),
        ((-1, -1), 6, "only one dimension can be inferred"),
        ((0, -1), 0, r"cannot reshape tensor of 0 elements into shape \[0, -1\]"),
        ((-2,), 6, "invalid shape dimension -2"),
    ):
        with pytest.raises(RuntimeError, match=sentence):
            shapes.infer_size(shape, count)


def test_rules_are_remembered_within_bounds():
    """The memory of a layout does not grow without end."""
    start = contiguous((3, 4), dtypes.float32)
    for number in range(1000):
        shapes.remember(start, ("a rule", number), number)
    assert len(start.memo) <= 256
