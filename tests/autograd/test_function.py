"""torch.autograd.Function."""

import gc
import weakref

import pytest

import flambeau as torch

Function = torch.autograd.Function
once_differentiable = torch.autograd.function.once_differentiable


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3.0 * x * x * grad


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor, name=None):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None


def test_gradient_and_names():
    x = leaf(2.0, 3.0)
    y = Cube.apply(x)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CubeBackward"
    assert repr(y.grad_fn).startswith("<torch.autograd.function.CubeBackward object at ")
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def test_double_backward():
    x = leaf(2.0)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.tolist(), second.tolist()) == ([12.0], [12.0])


def test_other_arguments():
    x = leaf(2.0)
    y = Scale.apply(x, 5.0, "name")
    assert y.grad_fn.needs_input_grad == (True, False, False)
    assert len(y.grad_fn.next_functions) == 1
    y.sum().backward()
    assert x.grad.tolist() == [5.0]


def test_second_backward():
    y = Cube.apply(leaf(2.0)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_under_no_grad():
    with torch.no_grad():
        assert Cube.apply(leaf(2.0)).grad_fn is None
    assert not Cube.apply(torch.tensor([2.0])).requires_grad


def test_saved_tensors_are_the_objects_saved():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2.0
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.saved_tensors)
            return grad

    seen = []
    x = leaf(1.0)
    middle = x * 1.0
    for given in (x, middle):
        y = Keep.apply(given)
        y.sum().backward()
        assert seen[-1][0] is given
        assert seen[-1][1] is None
        assert seen[-1][2].tolist() == [2.0]


def test_saved_input_written_since():
    x = leaf(2.0)
    middle = x * 1.0
    y = Cube.apply(middle).sum()
    middle.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


class Broken(Function):
    answer = None

    @staticmethod
    def forward(ctx, x, other):
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        return Broken.answer(grad)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda g: g, r"returned an incorrect number of gradients \(expected 2, got 1\)"),
        (
            lambda g: (g, g),
            (
                "function BrokenBackward returned a gradient different than None at position 2, "
                "but the corresponding forward input was not a Variable"
            ),
        ),
        (lambda g: (3.0, None), r"expected Variable or None \(got float\)"),
        (
            lambda g: (torch.tensor([1.0, 2.0, 3.0]), None),
            (
                r"Function BrokenBackward returned an invalid gradient at index 0 - got \[3\] "
                r"but expected shape compatible with \[2\]"
            ),
        ),
    ],
)
def test_wrong_gradients(answer, message):
    Broken.answer = staticmethod(answer)
    y = Broken.apply(leaf(1.0, 2.0), 2.0).sum()
    with pytest.raises(RuntimeError, match=message):
        y.backward()


def test_trailing_nones_are_ignored():
    Broken.answer = staticmethod(lambda g: (g, None, None, None))
    x = leaf(1.0)
    Broken.apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_no_backward():
    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
        Forward.apply(leaf(1.0)).sum().backward()


def test_legacy_functions():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        cube = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        cube(leaf(1.0))


class Two(Function):
    @staticmethod
    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        return x * 2.0, x * 3.0, "text"

    @staticmethod
    def backward(ctx, *grads):
        Two.seen = [g if g is None else g.tolist() for g in grads]
        return grads[0], None


def test_materialized_gradients():
    first, _, text = Two.apply(leaf(1.0), True)
    assert text == "text"
    first.sum().backward()
    assert Two.seen == [[1.0], [0.0], None]
    Two.apply(leaf(1.0), False)[0].sum().backward()
    assert Two.seen == [[1.0], None, None]


def test_runs_with_zeros_when_no_gradient_arrives():
    class Nothing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return None

    class Watch(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.tolist())
            return grad

    seen = []
    Nothing.apply(Watch.apply(leaf(1.0))).sum().backward()
    assert seen == [[0.0]]


def test_mark_non_differentiable():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            sign = x * 0.0
            ctx.mark_non_differentiable(sign)
            return x * 2.0, sign

        @staticmethod
        def backward(ctx, grad, grad_sign):
            return grad * 2.0

    x = leaf(1.0)
    y, sign = Split.apply(x)
    assert (y.requires_grad, sign.requires_grad) == (True, False)
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.0


def test_mark_dirty():
    x = leaf(1.0, 2.0)
    middle = x * 1.0
    assert Double.apply(middle) is middle
    assert middle.grad_fn.name() == "DoubleBackward"
    middle.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_mark_dirty_of_a_view():
    x = leaf(1.0, 2.0)
    base = x * 1.0
    Double.apply(base.select(0, 1))
    assert type(base.grad_fn).__name__ == "CopySlices"
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_mark_dirty_errors():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used"):
        Double.apply(leaf(1.0))

    class Hidden(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2.0

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward"):
        Hidden.apply(leaf(1.0) * 1.0)


def test_inputs_returned_as_they_are():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3.0

    x = leaf(1.0, 2.0)
    middle = x * 1.0
    y = Same.apply(middle)
    assert y is not middle
    assert middle.grad_fn.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="Output 0 of Same is a view and is being modified"):
        y.add_(1.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_setup_context():
    class Square(Function):
        @staticmethod
        def forward(x, factor=2.0):
            return x * x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, factor = inputs
            ctx.factor = factor
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, grad):
            x, output = ctx.saved_tensors
            assert output.tolist() == [18.0]
            return grad * x * 2.0 * ctx.factor, None

    x = leaf(3.0)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2.0

    x = leaf(3.0)
    (plain,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    assert plain.tolist() == [2.0]
    y = Once.apply(x)
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was"):
        first.sum().backward()


def test_save_for_backward_takes_tensors_only():
    class Number(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x * 2.0

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but"):
        Number.apply(leaf(1.0))


def test_no_cycles():
    def build():
        x = leaf(1.0)
        y = Cube.apply(x)
        z = Two.apply(y, True)[0].sum()
        z.backward(create_graph=True)
        return [weakref.ref(x), weakref.ref(y), weakref.ref(z)]

    gc.collect()
    gc.disable()
    try:
        assert [reference() for reference in build()] == [None] * 3
    finally:
        gc.enable()


def test_arguments_by_name():
    """They are put in their places; nothing is filled in between, as in torch."""
    x, y = leaf(2.0), leaf(3.0)

    class Product(Function):
        @staticmethod
        def forward(ctx, a, b=None, times=1.0):
            ctx.save_for_backward(a, b)
            return a * b * times

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad * b, grad * a

    Product.apply(x, b=y).backward()
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)
    with pytest.raises(TypeError, match=r"forward\(\) missing required argument: 'b' \(position 1"):
        Product.apply(x, times=2.0)
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'other'"):
        Product.apply(x, y, other=1)


def test_marked_inputs_count_as_written():
    """What forward writes past every counter is noticed all the same."""

    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            x.data.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    y = x * 1
    square = y * y
    Doubled.apply(y)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        square.backward()


def test_an_input_returned_as_it_is_without_gradients():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        made = Same.apply(x)
    assert made is not x
    assert not made.requires_grad
