"""Every registered operator: its declarations fit together, its samples give torch's answers.

Values, gradients and second derivatives were recorded from torch 2.13 in float64
(tests/recorded/record_operators.py). Kernels' own accuracy is tested where they are written, so
1e-8 of the largest element is plenty: a wrong formula is off by far more."""

import json
from functools import partial
from pathlib import Path

import pytest
from operator_cases_support import arguments, cases, complex_cases, flat, tensor_of, weights

import flambeau as torch
from flambeau.ops import REGISTRY
from flambeau.ops.define import Elementwise, View, parameter_kinds
from flambeau.tensor import functions

RECORDED = Path(__file__).parent / "recorded" / "operators.json"
ANSWERS = json.loads(RECORDED.read_text(encoding="utf-8"))
ANSWERS |= json.loads((RECORDED.parent / "complex_operators.json").read_text(encoding="utf-8"))
CASES = {
    key: (operator, case) for key, operator, case in (*cases(), *complex_cases()) if key in ANSWERS
}
TOLERANCE = 1e-8
make = partial(tensor_of, torch)


def as_reals(tensor):
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def numbers(tensor):
    return as_reals(tensor.detach()).reshape(-1).tolist()


def check(found, expected, what):
    """Every element near the recorded one, measured against the largest."""
    if expected is None or found is None:
        present = numbers(found) if found is not None else expected or []
        assert all(value == 0 for value in present), f"{what}: {found} for {expected}"
        return
    values = numbers(found)
    assert len(values) == len(expected), what
    scale = max([1.0, *[abs(value) for value in expected if value == value]])
    for value, wanted in zip(values, expected, strict=True):
        same = value == wanted or (value != value and wanted != wanted)
        assert same or abs(value - wanted) <= TOLERANCE * scale, f"{what}: {values} for {expected}"


DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
OUTCOMES = json.loads((RECORDED.parent / "operator_dtypes.json").read_text(encoding="utf-8"))
# Operators that answer otherwise than torch for some dtypes, and why.
OTHERWISE = {
    **dict.fromkeys(("complex", "polar", "view_as_complex"), "there is no complex dtype of halves"),
    "convolution": "torch's functions take complex numbers apart before they call it",
    "attention": "torch's error comes from whichever product it tries first",
    **dict.fromkeys(
        ("floor_divide", "fmod", "remainder"), "cast to integers the divisors drawn become 0"
    ),
    "dropout_mask": "takes floating tensors only, as torch's dropout does",
    "hardtanh": "limits are run-time numbers, not seen at inference",
    "l1_loss": "refuses integers, which torch's takes without a mean",
    "prelu_kernel": "torch's is written out in the recording, without its check",
    "softsign": "torch's refuses bool in abs",
    "tanhshrink": "torch's refuses bool in sub",
    "threshold": "the value is a run-time number, not seen at inference",
    "threshold_backward": "torch's is written out in the recording",
    "zero": "torch's is written out in the recording",
    **dict.fromkeys(
        [
            f"{name}_backward"
            for name in (
                "elu",
                "hardshrink",
                "hardsigmoid",
                "hardswish",
                "hardtanh",
                "leaky_relu",
                "softplus",
            )
        ],
        "gets what the function's own check let pass",
    ),
    **dict.fromkeys(
        (
            "convolution_weight",
            "gru_steps",
            "gru_steps_backward",
            "largest_of_windows_backward",
            "lstm_steps",
            "lstm_steps_backward",
            "mean_of_windows",
            "mean_of_windows_backward",
        ),
        "torch's is written out in the recording",
    ),
}


@pytest.mark.parametrize("name", [name for name in OUTCOMES if name not in OTHERWISE])
def test_dtypes_as_in_torch(name):
    """The dtype of the result, or the class and the first line of the error, for every dtype."""
    _, case = CASES[f"{name} 0"]
    for dtype, expected in zip(DTYPES, OUTCOMES[name], strict=True):

        def cast(values, drawn, wanted=dtype):
            made = make(values, drawn).detach()
            return made.to(getattr(torch, wanted)) if made.is_floating_point() else made

        given, named = arguments(f"{name} 0", case, cast)
        try:
            found = getattr(functions, name)(*given, **named)
        except Exception as error:
            outcome = [type(error).__name__, str(error).split("\n")[0]]
        else:
            outs = found if isinstance(found, (tuple, list)) else [found]
            outcome = " ".join(str(each.dtype)[6:] for each in outs)
        assert outcome == expected, dtype


def weighed(key, tensors):
    total = None
    for number, each in enumerate(tensors):
        if each is not None and each.requires_grad:
            each = as_reals(each)
            factors = torch.tensor(
                weights(f"{key} {number}", each.numel()), dtype=torch.float64
            ).reshape(each.shape)
            term = (each.to(torch.float64) * factors).sum()
            total = term if total is None else total + term
    return total


@pytest.mark.parametrize("key", CASES)
def test_answers_of_torch(key):
    """Values, gradients and second derivatives on the declared samples."""
    operator, case = CASES[key]
    answer = ANSWERS[key]
    given, named = arguments(key, case, make)
    found = getattr(functions, operator.name)(*given, **named)
    outs = list(found) if isinstance(found, (tuple, list)) else [found]
    assert [list(each.shape) for each in outs] == answer["shapes"]
    for each, expected in zip(outs, answer["out"], strict=True):
        check(each, expected, "value")
    if "grad" not in answer:
        return
    inputs = flat([*given, *named.values()])
    total = weighed(key, outs)
    grads = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    for each, expected in zip(grads, answer["grad"], strict=True):
        check(each, expected, "gradient")
    slope = weighed(f"grad {key}", grads)
    if "second" not in answer:
        return
    second = (None,) * len(inputs)
    if slope is not None:
        second = torch.autograd.grad(slope, inputs, allow_unused=True)
    for each, expected in zip(second, answer["second"], strict=True):
        check(each, expected, "second derivative")


@pytest.mark.parametrize("name", REGISTRY)
def test_parameters_fit_together(name):
    """vjp names only operands, results, attributes and what the engine offers."""
    operator = REGISTRY[name]
    assert type(operator).__doc__, "an operator says what it computes"
    kind = type(operator)
    if isinstance(operator, Elementwise):
        signature = parameter_kinds(kind.formula, 2)
    else:
        function = kind.view if isinstance(operator, View) else kind.infer
        signature = parameter_kinds(function, 1)
    if not operator.differentiable or not hasattr(operator, "vjp"):
        assert not operator.differentiable, "differentiable means that there is a vjp"
        return
    parameters = list(parameter_kinds(kind.vjp, 2))
    offered = {"grad", "grads", "needs", "out", *operator.returns, *signature}
    offered |= {f"{each}_layout" for each in signature}
    offered |= {f"grad_{each}" for each in operator.returns}
    inferred = {
        "dims", "eps", "dim", "keepdim", "correction", "ord", "repeats", "window", "divisor",
        "counts_padding",
    }  # fmt: skip
    assert not [each for each in parameters if each not in offered | inferred]
    for operand, names in operator.saved_for.items():
        assert operand in signature
        assert set(names) <= set(parameters)


def test_what_torch_has_is_recorded():
    """Samples of public names without an answer would be compared with nothing."""
    names = json.loads((RECORDED.parent / "torch_names.json").read_text(encoding="utf-8"))["names"]
    public = {*names["torch"], *names["torch.nn.functional"]}
    public |= {f"special_{name}" for name in names["torch.special"]}
    missing = [
        key for key, operator, _ in cases() if operator.name in public and key not in ANSWERS
    ]
    assert not missing, "run tests/recorded/record_operators.py"


def test_every_operator_has_samples_or_is_named_here():
    """A new operator comes with argument lists to try it with."""
    tested_elsewhere = {"alias", "detach"}
    missing = {
        name
        for name, operator in REGISTRY.items()
        if not operator.samples(__import__("operator_cases_support").SAMPLES)
        and not operator.updates
        and not type(operator).__module__.startswith("flambeau.ops.creation")
    }
    assert missing == tested_elsewhere
