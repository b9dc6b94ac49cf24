"""torch.overrides: who may take a call over, asked and called as torch does it."""

import pytest

import flambeau as torch
from flambeau.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_default_nowrap_functions,
    get_ignored_functions,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    redispatch_function,
    resolve_name,
    wrap_torch_function,
)


class Base:
    answer = "base"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return cls.answer and (cls.answer, function.__name__, types, args, kwargs)


class Derived(Base):
    answer = "derived"


class Silent:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def test_who_has_one():
    x = torch.ones(2)
    assert not has_torch_function((x, 3, "text"))
    assert has_torch_function((x, Base()))
    assert is_tensor_like(x)
    assert is_tensor_like(Base())
    assert not is_tensor_like(3)


def test_subclasses_are_asked_first_and_silence_passes_on():
    silent, base, derived = Silent(), Base(), Derived()
    given = handle_torch_function(torch.ones, (silent, base, derived), 1, key=2)
    assert given == ("derived", "ones", (Silent, Derived, Base), (1,), {"key": 2})
    with pytest.raises(TypeError, match=r"no implementation found for .*ones' on types that"):
        handle_torch_function(torch.ones, (silent,))


def test_wrapped_functions_hand_over():
    @wrap_torch_function(lambda x, y: (x, y))
    def pair(x, y):
        return x + y

    assert pair(1, 2) == 3
    base = Base()
    assert pair(1, base)[:2] == ("base", "pair")


class Logged(TorchFunctionMode):
    """Keeps names under a mark."""

    def __init__(self, mark, log):
        self.mark, self.log = mark, log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append((self.mark, resolve_name(func), [each.__name__ for each in types]))
        return func(*args, **(kwargs or {}))


class Length(torch.Tensor):
    """A subclass without members of its own."""


def test_modes_are_asked_last_entered_first_and_before_arguments():
    log = []
    with Logged("outer", log), Logged("inner", log), BaseTorchFunctionMode():
        found = torch.add(Length([1.0]), 1)
    assert type(found) is Length
    assert log == [
        ("inner", "torch.add", ["Length"]), ("outer", "torch.add", ["Length"]),
    ]  # fmt: skip
    assert not torch._C._len_torch_function_stack()


def test_a_mode_that_fails_is_left():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Fails():
        torch.ones(1)
    assert torch.ones(1).tolist() == [1]
    assert not torch._C._is_torch_function_mode_enabled()
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        torch.ones(1)


def test_modes_and_arguments_can_be_silenced():
    log = []
    with Logged("mode", log):
        with torch._C.DisableTorchFunctionSubclass():
            assert type(Length([1.0]) + 1) is torch.Tensor
        count = len(log)
        with torch._C.DisableTorchFunction():
            assert type(Length([1.0]) + 1) is torch.Tensor
            assert not torch._C._is_torch_function_enabled()
    assert len(log) == count > 0
    assert not has_torch_function((torch.ones(1),))
    assert has_torch_function((Length([1.0]),))


def test_a_pass_of_gradients_is_not_seen():
    log = []
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with Logged("mode", log):
        y.backward()
    assert log == [("mode", "torch.Tensor.backward", ["Tensor"])]
    assert x.grad.tolist() == [2, 2]


def test_the_users_code_in_a_pass_is_seen():
    seen = []

    class Scale(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    scale = Scale([2.0, 3.0])

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.add(grad, scale)

    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(type(scale.neg())))
    y = Twice.apply(x * 1)
    y.register_hook(lambda grad: grad.mul(scale).as_subclass(torch.Tensor))
    total = y.sum()
    seen.clear()
    total.backward()
    assert [each for each in seen if each != "as_subclass"] == ["mul", "add", "neg", Scale]
    assert x.grad.tolist() == [4, 6]


def test_redispatch_leaves_out_one_hop():
    log = []

    def twice(x):
        if has_torch_function((x,)):
            return handle_torch_function(twice, (x,), x)
        return x + x

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            if func is twice:
                return redispatch_function(func, types, args, kwargs)
            return super().__torch_function__(func, types, args, kwargs)

    assert twice(Seen([1.0])).tolist() == [2]
    assert log[:2] == ["twice", "add"]


def test_lists_and_names():
    functions = get_overridable_functions()
    assert torch.add in functions[torch]
    assert torch.Tensor.add in functions[torch.Tensor]
    assert torch.nn.functional.relu in functions[torch.nn.functional]
    assert torch.ones in get_ignored_functions()
    assert torch.add not in get_ignored_functions()
    assert torch.Tensor.grad.__get__ in get_default_nowrap_functions()
    assert is_tensor_method_or_property(torch.Tensor.add)
    assert is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert not is_tensor_method_or_property(torch.add)
    assert resolve_name(torch.split) == "torch.functional.split"
    assert resolve_name(print) is None
