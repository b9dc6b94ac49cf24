"""Module: registration, traversal, state dicts, hooks, conversion, copies, torch's errors."""

import copy
import pickle
import re

import pytest

import flambeau as torch
from flambeau import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.rest = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.tied = self.first
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("forgotten", torch.ones(1), persistent=False)
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x, times=1):
        return self.rest(self.first(x)) * times


KEYS = [
    "weight", "kept", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.weight",
    "rest.1.bias", "rest.1.running_mean", "rest.1.running_var", "rest.1.num_batches_tracked",
    "tied.weight", "tied.bias",
]  # fmt: skip


def test_what_is_assigned_is_registered():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "weight", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.weight",
        "rest.1.bias",
    ]  # fmt: skip
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert list(net.state_dict()) == KEYS
    del net.weight
    assert "weight" not in dict(net.named_parameters())


def test_repr_is_torchs():
    assert repr(Net().rest) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=3, bias=True)\n  (1): "
        "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)\n)"
    )


def test_state_goes_round():
    torch.manual_seed(0)
    one, other = Net(), Net()
    one(torch.rand(4, 2))
    state = one.state_dict()
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    for name, value in other.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert not state["weight"].requires_grad
    assert state["weight"].data_ptr() == one.weight.data_ptr()
    assert one.state_dict(keep_vars=True)["weight"] is one.weight
    assert state._metadata["rest.1"] == {"version": 2}


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda s: s.pop("weight"), '\tMissing key(s) in state_dict: "weight". '),
        (
            lambda s: s.update({"zz": torch.ones(1)}),
            '\tUnexpected key(s) in state_dict: "zz". ',
        ),
        (
            lambda s: s.update({"kept": torch.ones(3)}),
            (
                "\tsize mismatch for kept: copying a param with shape torch.Size([3]) from "
                "checkpoint, the shape in current model is torch.Size([2])."
            ),
        ),
        (
            lambda s: s.update({"kept": [1, 2]}),
            (
                '\tWhile copying the parameter named "kept", expected torch.Tensor or Tensor-like '
                "object from checkpoint but received <class 'list'>"
            ),
        ),
    ],
)
def test_states_that_do_not_fit_are_refused_in_torchs_words(change, text):
    state = Net().state_dict()
    change(state)
    with pytest.raises(RuntimeError) as caught:
        Net().load_state_dict(state)
    assert str(caught.value) == f"Error(s) in loading state_dict for Net:\n{text}"


def test_all_that_is_wrong_is_said_at_once():
    state = Net().state_dict()
    del state["weight"], state["kept"]
    state["zz"] = torch.ones(1)
    with pytest.raises(RuntimeError) as caught:
        Net().load_state_dict(state)
    assert str(caught.value).splitlines()[1:] == [
        '\tMissing key(s) in state_dict: "weight", "kept". ',
        '\tUnexpected key(s) in state_dict: "zz". ',
    ]
    result = Net().load_state_dict(state, strict=False)
    assert result.missing_keys == ["weight", "kept"]
    assert result.unexpected_keys == ["zz"]


def test_loading_counts_as_a_write_but_not_as_history():
    net = Net()
    before = net.weight._version
    net.load_state_dict(Net().state_dict())
    assert net.weight._version > before
    assert net.weight.is_leaf
    assert net.weight.requires_grad


@pytest.mark.parametrize(
    "act, kind, text",
    [
        (
            lambda n: setattr(n, "weight", torch.ones(2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None",
        ),
        (
            lambda n: setattr(n, "first", 3),
            TypeError,
            "cannot assign 'int' as child module 'first' (torch.nn.Module or None expected)",
        ),
        (lambda n: n.register_buffer("first", None), KeyError, "\"attribute 'first' already exist"),
        (lambda n: n.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda n: n.nothing, AttributeError, "'Net' object has no attribute 'nothing'"),
        (lambda n: n.train(3), ValueError, "training mode is expected to be boolean"),
        (
            lambda n: n.to(torch.int64),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, but got desired",
        ),
        (
            lambda n: nn.Module()(1),
            NotImplementedError,
            'Module [Module] is missing the required "forward" function',
        ),
        (lambda n: n.get_submodule("rest.7"), AttributeError, "Sequential has no attribute `7`"),
    ],
)
def test_refuses_in_torchs_words(act, kind, text):
    with pytest.raises(kind) as caught:
        act(Net())
    assert str(caught.value).startswith(text)


def test_assigning_before_init_is_refused():
    class Careless(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"cannot assign module before Module\.__init__"):
        Careless()


def test_hooks_see_and_change_what_passes():
    net, seen = Net(), []
    handles = [
        net.register_forward_pre_hook(lambda m, inputs: seen.append(len(inputs))),
        net.register_forward_pre_hook(
            lambda m, inputs, named: (inputs, {**named, "times": 2}), with_kwargs=True
        ),
        net.register_forward_hook(lambda m, inputs, output: output * 0 + 5),
        net.register_forward_hook(
            lambda m, inputs, named, output: seen.append(named), with_kwargs=True
        ),
    ]
    result = net(torch.ones(4, 2))
    assert seen == [1, {"times": 2}]
    assert result.flatten().tolist() == [5.0] * 12
    for each in handles:
        each.remove()
    net(torch.ones(4, 2))
    assert len(seen) == 2


def test_backward_hooks_see_gradients_on_both_sides():
    layer, seen = nn.Linear(2, 3), []
    layer.register_full_backward_pre_hook(lambda m, outer: seen.append(outer[0].shape))
    layer.register_full_backward_hook(lambda m, inner, outer: (inner[0] * 2,))
    x = torch.ones(4, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [(4, 3)]
    assert torch.equal(x.grad, 2 * layer.weight.detach().sum(0).expand(4, 2))


def test_global_hooks_reach_every_module():
    from flambeau.nn.modules.module import register_module_forward_hook

    seen = []
    handle = register_module_forward_hook(lambda m, inputs, output: seen.append(type(m).__name__))
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    net(torch.ones(2))
    handle.remove()
    net(torch.ones(2))
    assert seen == ["ReLU", "Tanh", "Sequential"]


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))])
def test_copies_are_whole_and_apart(copier):
    net = Net().eval()
    made = copier(net)
    assert all(
        torch.equal(a, b)
        for a, b in zip(net.state_dict().values(), made.state_dict().values(), strict=True)
    )
    assert made.tied is made.first
    assert not made.training
    assert isinstance(made.weight, nn.Parameter)
    with torch.no_grad():
        made.weight.add_(1)
    assert net.weight.tolist() == [1.0, 1.0]


def test_conversion_keeps_parameters_the_same_objects():
    net = Net()
    parameters = list(net.parameters())
    net.double()
    assert all(a is b for a, b in zip(parameters, net.parameters(), strict=True))
    assert net.weight.dtype is torch.float64
    assert net.rest[1].num_batches_tracked.dtype is torch.int64
    assert net.to(torch.float32).kept.dtype is torch.float32


def test_modes_gradients_and_apply_reach_all():
    net = Net().eval()
    assert not any(module.training for module in net.modules())
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())
    names = []
    net.apply(lambda module: names.append(type(module).__name__))
    assert names == ["Linear", "Linear", "BatchNorm1d", "Sequential", "Net"]
    net.requires_grad_().train()(torch.rand(3, 2)).sum().backward()
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_calling_a_module_costs_one_look_at_its_hooks():
    class Counted(nn.Module):
        def forward(self, x):
            return x

    assert Counted()(3) == 3
    assert Counted().__call__.__func__ is nn.Module.__call__


def test_a_submodule_is_set_at_its_path():
    net = Net()
    net.set_submodule("rest.0", nn.Tanh(), strict=True)
    net.set_submodule("rest.extra", nn.ReLU())
    assert [type(module).__name__ for module in net.rest] == ["Tanh", "BatchNorm1d", "ReLU"]
    for path, module, strict, error, message in (
        ("", nn.Tanh(), False, ValueError, "Cannot set the submodule without a target name!"),
        ("rest", 3, False, ValueError, "`module` is not an nn.Module, found <class 'int'>"),
        ("rest.9", nn.Tanh(), True, AttributeError, "Sequential has no attribute `9`"),
        ("weight", nn.Tanh(), False, AttributeError, "`weight` is not an nn.Module"),
        ("weight.x", nn.Tanh(), False, AttributeError, "`weight` is not an nn.Module"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            net.set_submodule(path, module, strict)


def test_keys_of_what_is_none_and_state_nobody_takes_are_unexpected():
    layer = nn.Linear(1, 1, bias=False)
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "bias"'):
        layer.load_state_dict({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)})

    class Saves(nn.Module):
        def get_extra_state(self):
            return 1

    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "_extra_state"'):
        Saves().load_state_dict(Saves().state_dict())


def test_state_dict_takes_its_arguments_by_name():
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(nn.Linear(1, 1).state_dict(None, "a.")) == ["a.weight", "a.bias"]


def test_loading_onto_meta_says_that_nothing_happens():
    layer = nn.Linear(1, 1, bias=False, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter"):
        layer.load_state_dict({"weight": torch.zeros(1, 1)})


def test_a_copied_parameter_has_no_gradient():
    layer = nn.Linear(1, 1)
    layer(torch.ones(1)).sum().backward()
    assert copy.deepcopy(layer).weight.grad is None
