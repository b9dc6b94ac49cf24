"""Operators that programs define."""

import pytest

import flambeau as torch
from flambeau import library


@pytest.fixture
def scaled():
    @library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
        return x * by

    return scaled


def test_an_operator_is_at_its_namespace(scaled):
    assert torch.ops.tests.scaled(torch.ones(2), 3.0).tolist() == [3.0, 3.0]
    assert torch.ops.tests.scaled.default(torch.ones(1)).tolist() == [2.0]
    assert (str(torch.ops.tests.scaled.default), repr(scaled)) == (
        "tests.scaled.default", "<CustomOpDef(tests::scaled)>",
    )  # fmt: skip
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute 'no'"):
        torch.ops.tests.no  # noqa: B018
    with pytest.raises(AttributeError, match=r"'tests\.scaled' has no overload name 'no'"):
        torch.ops.tests.scaled.no  # noqa: B018


def test_the_gradient_is_the_registered_one(scaled):
    x = torch.ones(2, requires_grad=True)
    y = scaled(x, 3.0)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_tests_scaled_defaultBackward"
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()

    def keep(ctx, inputs, output):
        ctx.by = inputs[1]

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.by * 10, None), setup_context=keep)
    scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_arguments_by_name_have_their_places():
    seen = {}

    @library.custom_op("tests::placed", mutates_args=())
    def placed(x: torch.Tensor, by: float = 2.0, *, more: float = 1.0) -> torch.Tensor:
        return x * by + more

    def keep(ctx, inputs, keyword_only_inputs, output):
        seen.update(inputs=inputs[1:], names=keyword_only_inputs)

    placed.register_autograd(lambda ctx, grad: (grad, None), setup_context=keep)
    placed(by=3.0, x=torch.ones(1, requires_grad=True)).sum().backward()
    assert seen == {"inputs": (3.0,), "names": {"more": 1.0}}


def test_an_input_may_not_come_back():
    same = library.custom_op("tests::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> T")
    with pytest.raises(RuntimeError, match=r"must not also be an input to this custom operator"):
        same(torch.ones(1))


def test_tensors_without_data_get_the_fake(scaled):
    x = torch.empty(3, device="meta")
    with pytest.raises(NotImplementedError, match="no fake impl"):
        scaled(x)
    library.register_fake("tests::scaled", lambda x, by=2.0: torch.empty_like(x))
    assert scaled(x).is_meta


def test_a_library_defines_by_schemas():
    made = library.Library("tests", "FRAGMENT")
    assert made.define("add_one(Tensor x) -> Tensor") == "add_one"
    with pytest.raises(NotImplementedError, match="Could not run 'tests::add_one'"):
        torch.ops.tests.add_one(torch.ones(1))
    made.impl("add_one", lambda x: x + 1, "CPU")
    assert torch.ops.tests.add_one(torch.ones(1)).tolist() == [2.0]
    library.define("tests::negated", "(Tensor x) -> Tensor")
    library.impl("tests::negated", "CompositeImplicitAutograd")(lambda x: -x)
    assert torch.ops.tests.negated(torch.ones(1, requires_grad=True)).requires_grad
    with pytest.raises(NotImplementedError, match="aten::relu: kernels are given to operators"):
        library.Library("aten", "IMPL", "CPU").impl("relu", lambda x: x)


def test_kernels_may_be_there_before_their_operator():
    library.register_fake("tests::later", lambda x: torch.empty(7, device="meta"))
    assert not hasattr(torch.ops.tests, "later")
    library.define("tests::later", "(Tensor x) -> Tensor")
    assert torch.ops.tests.later(torch.empty(2, device="meta")).shape == (7,)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: None, "() -> ()"),
        (eval("lambda x: x"), "Parameter x must have a type annotation"),
    ],
)  # fmt: skip
def test_schemas_come_from_annotations(function, told):
    if told.startswith("Parameter"):
        with pytest.raises(ValueError, match=told):
            library.infer_schema(function, mutates_args=())
    else:
        assert library.infer_schema(function, mutates_args=()) == told


def test_schemas_name_lists_options_and_what_is_written():
    def function(
        x: torch.Tensor, sizes: list[int], bias: torch.Tensor | None = None, *, flag: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x

    assert library.infer_schema(function, mutates_args={"x"}) == (
        "(Tensor(a0!) x, SymInt[] sizes, Tensor? bias=None, *, bool flag=True) -> (Tensor, Tensor)"
    )


def test_autocast_converts_inputs(scaled):
    scaled.register_autocast("cpu", torch.bfloat16)
    assert scaled(torch.ones(1)).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scaled(torch.ones(1)).dtype is torch.bfloat16
