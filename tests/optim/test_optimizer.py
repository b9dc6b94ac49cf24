"""What all optimizers share: groups, errors, hooks, state; one record and one flush a step."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import optim


def parameter(values=(1.0, 2.0)):
    made = torch.tensor(list(values), requires_grad=True)
    made.grad = torch.ones(len(values))
    return made


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda w: optim.SGD([], 1), ValueError, "optimizer got an empty parameter list"),
        (lambda w: optim.SGD(w, 1), TypeError, "params argument given to the optimizer should be"),
        (lambda w: optim.SGD([w * 2], 1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda w: optim.SGD([w], -1), ValueError, "Invalid learning rate: -1"),
        (lambda w: optim.SGD([1], 1), TypeError, "optimizer can only optimize Tensors, but one of"),
        (lambda w: optim.Adam([w], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at inde"),
        (lambda w: optim.Adam([w], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda w: optim.SGD([{"params": {w}}]), TypeError, "optimizer parameters need to be"),
        (lambda w: optim.Adafactor([w], d=0.5), ValueError, "Clipping threshold d should be >= 1"),
        (lambda w: optim.Adafactor([w], lr=-1), ValueError, "Learning rate should be >= 0 but is"),
        (lambda w: optim.Muon([w]), ValueError, "Muon only supports 2D parameters whereas we fou"),
        (lambda w: optim.Muon([w], momentum=-1), ValueError, "momentum should be >= 0 but is: -1"),
        (lambda w: optim.SGD([w], nesterov=True), ValueError, "Nesterov momentum requires a mom"),
        (
            lambda w: optim.SGD([{"params": [w]}, {"params": [w]}], 1),
            ValueError,
            "some parameters appear in more than one parameter group",
        ),
        (
            lambda w: optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "loaded state dict has a different number of parameter groups",
        ),
        (
            lambda w: optim.Adam([w], torch.tensor(0.1), foreach=True),
            ValueError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            lambda w: optim.RMSprop([w], capturable=True).step(),
            AssertionError,
            "If capturable=True, params and state_steps must be on supported devices: ['cuda',",
        ),
        (
            lambda w: optim.NAdam([w], capturable=True).step(),
            AssertionError,
            "If capturable=True, params, mu_products and state_steps must be on supported devices",
        ),
    ],
)
def test_refuses_in_torchs_words(make, kind, text):
    with pytest.raises(kind) as caught:
        make(parameter())
    assert str(caught.value).startswith(text)


def test_a_step_is_one_record_and_ends_with_a_flush():
    parameters = [torch.ones(3, n + 1, requires_grad=True) for n in range(5)]
    optimizer = optim.AdamW(parameters, 1e-2)
    for _ in range(3):
        for each in parameters:
            each.grad = torch.ones_like(each)
        sum(each.grad.sum() for each in parameters).item()  # nothing is pending any more
        with torch.debug.counts() as seen:
            optimizer.step()
    assert seen.records == 1
    assert seen.segments_flushed == 1


def test_a_changing_rate_makes_no_new_plan():
    weight = parameter()
    optimizer = optim.Adam([weight], 1e-2)
    for _ in range(4):
        optimizer.step()
    with torch.debug.counts() as seen:
        for step in range(20):
            optimizer.param_groups[0]["lr"] = 1e-3 * (step + 1)
            optimizer.step()
    assert seen.segments_planned == 0
    assert seen.kernels_compiled == 0


def test_the_step_count_is_a_tensor_to_whoever_looks():
    weight = parameter()
    optimizer = optim.Adam([weight])
    optimizer.step()
    count = optimizer.state[weight]["step"]
    assert count.dtype is torch.float32
    assert count.shape == ()
    optimizer.step()
    assert count.item() == 2  # the same tensor goes on counting while somebody holds it
    assert optimizer.state_dict()["state"][0]["step"].item() == 2
    optimizer.state[weight]["step"] = torch.tensor(9.0)
    optimizer.step()
    assert optimizer.state[weight]["step"].item() == 10


def test_parameters_without_gradients_stay_and_keep_no_state():
    with_gradient, without = parameter(), torch.ones(2, requires_grad=True)
    optimizer = optim.Adam([with_gradient, without])
    optimizer.step()
    assert without.tolist() == [1.0, 1.0]
    assert without not in optimizer.state
    without.grad = torch.ones(2)
    optimizer.step()  # counts apart: one parameter's second step, the other's first
    assert optimizer.state[with_gradient]["step"].item() == 2
    assert optimizer.state[without]["step"].item() == 1


def test_zero_grad_forgets_or_zeroes():
    weight = parameter()
    optimizer = optim.SGD([weight], 0.1)
    gradient = weight.grad
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is gradient
    assert gradient.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_hooks_run_around_steps_and_state():
    weight = parameter()
    optimizer = optim.SGD([weight], 0.1)
    seen = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, a, k: seen.append("before")),
        optimizer.register_step_post_hook(lambda o, a, k: seen.append("after")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "mine": 1}),
    ]
    optimizer.step()
    assert optimizer.state_dict()["mine"] == 1
    for each in handles:
        each.remove()
    optimizer.step()
    assert seen == ["before", "after"]
    assert "mine" not in optimizer.state_dict()


def test_groups_have_settings_of_their_own():
    one, other = parameter(), parameter()
    optimizer = optim.SGD([{"params": [one]}, {"params": [other], "lr": 0.5}], lr=0.25)
    optimizer.step()
    assert one.tolist() == [0.75, 1.75]
    assert other.tolist() == [0.5, 1.5]
    third = parameter()
    optimizer.add_param_group({"params": third})
    assert optimizer.param_groups[2]["lr"] == 0.25


def test_a_closure_runs_with_gradients_and_its_loss_comes_back():
    weight = torch.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([weight], 0.25)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert weight.tolist() == [1.0]


def test_copies_and_pickles():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = optim.Adam([weight], 0.1)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (state,) = other.state.values()
        assert state["step"].item() == 1
        assert other.param_groups[0]["lr"] == 0.1


def test_a_write_that_saved_values_need_is_noticed():
    weight = torch.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight], 0.1)
    loss = (weight * weight).sum()
    weight.grad = torch.ones(2)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


COMPLEX_CASES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}), ("AdamW", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True}), ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}), ("Adamax", {"lr": 0.1}), ("NAdam", {"lr": 0.1}), ("RAdam", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1}), ("Rprop", {}), ("LBFGS", {"lr": 0.1, "max_iter": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), COMPLEX_CASES)
def test_a_complex_parameter_moves_as_its_parts_do(name, settings):
    start = torch.tensor([1 - 0.5j, 0.25 + 2j, -1j], dtype=torch.complex128)
    whole = torch.nn.Parameter(start.clone())
    parts = torch.nn.Parameter(torch.view_as_real(start).clone())
    optimizers = [getattr(torch.optim, name)([each], **settings) for each in (whole, parts)]
    for _ in range(4):
        for optimizer, number in (
            (optimizers[0], lambda: whole),
            (optimizers[1], lambda: torch.view_as_complex(parts)),
        ):

            def loss(optimizer=optimizer, number=number):
                optimizer.zero_grad()
                value = ((number() - 1j) ** 2).abs().sum()
                value.backward()
                return value

            optimizer.step(loss)
    moved = torch.view_as_real(whole.detach())
    assert torch.equal(moved, parts.detach())
    assert not torch.equal(moved, torch.view_as_real(start))


def test_adafactor_reads_sizes_once_a_group():
    matrices = [torch.ones(3, 4, requires_grad=True) for _ in range(5)]
    for each in matrices:
        each.grad = torch.ones(3, 4)
    chosen = optim.Adafactor(matrices)
    chosen.step()
    with torch.debug.counts() as seen:
        chosen.step()
    assert seen.segments_flushed <= 3
