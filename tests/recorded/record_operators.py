"""Writes operators.json: torch's values, gradients and second derivatives of declared samples,
complex_operators.json: the same of complex operands, and operator_dtypes.json.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_operators.py"""

import json
import math
import sys
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "ops")]

import window_references  # noqa: E402
from operator_cases_support import (  # noqa: E402
    arguments,
    cases,
    complex_cases,
    flat,
    tensor_of,
    weights,
)

from flambeau.base.dtypes import dtype as Dtype  # noqa: E402
from flambeau.ops.define import Underivable  # noqa: E402

make = partial(tensor_of, torch)


def torch_dtype(given):
    return getattr(torch, given.name)


def indexed(x, indices, dims=None):
    if dims is None:
        return x[tuple(indices)]
    places = [indices[dims.index(d)] if d in dims else slice(None) for d in range(x.dim())]
    return x[tuple(places)]


def attention(q, k, v, mask, dropout, scale, keep, is_causal):
    scores = q @ k.transpose(-1, -2) * scale
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    used = shares = torch.softmax(scores, -1).nan_to_num(0.0)
    if dropout is not None:
        used = shares * dropout / keep
    largest = scores.amax(-1)
    total = torch.exp(scores - largest.unsqueeze(-1)).sum(-1)
    return used @ v, largest.detach(), (1 / total).detach()


def batch_norm_train(x, w, b, eps):
    dims = [d for d in range(x.dim()) if d != 1]
    out = F.batch_norm(x, None, None, w, b, True, 0.1, eps)
    x = x.detach()
    wide = x if x.dtype is torch.float64 else x.float()
    centre, scale = wide.mean(dims), (wide.var(dims, False) + eps).rsqrt()
    return out, centre, wide.var(dims), centre, centre * 0, scale


def group_norm(x, n_groups, w, b, eps):
    out = F.group_norm(x, n_groups, w, b, eps)
    x = x.detach() if x.dtype is torch.float64 else x.detach().float()
    rows = x.reshape(x.shape[0], n_groups, -1)
    centre, scale = rows.mean(2, True), (rows.var(2, False, keepdim=True) + eps).rsqrt()
    return out, centre, centre * 0, scale


def layer_norm(x, shape, w, b, eps):
    out = F.layer_norm(x, shape, w, b, eps)
    x = x.detach() if x.dtype is torch.float64 else x.detach().float()
    dims = list(range(-len(shape), 0))
    centre, scale = x.mean(dims, True), (x.var(dims, False, keepdim=True) + eps).rsqrt()
    return out, centre, centre * 0, scale


def sliced(x, dim, start, end, step):
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]


def loss(function):
    return lambda *a: function(*a[:2], reduction=a[2], **extra(function, a[3:]))


def extra(function, rest):
    names = {F.smooth_l1_loss: "beta", F.huber_loss: "delta", F.kl_div: "log_target"}
    return {names[function]: rest[0]} if rest else {}


def classes(function):
    def called(x, y, w=None, ignore_index=-100, reduction="mean", smoothing=None):
        more = {} if smoothing is None else {"label_smoothing": smoothing}
        return function(x, y, w, ignore_index=ignore_index, reduction=reduction, **more)

    return called


aten = torch.ops.aten
REFERENCES = {
    "convert": lambda x, d: x.to(torch_dtype(d)),
    "contiguous_copy": lambda x: x.clone(memory_format=torch.contiguous_format),
    "copy": lambda x, y: x.clone().copy_(y),
    "fill": lambda x, v: x.clone().fill_(v),
    "zero": lambda x: x.clone().zero_(),
    "view": lambda x, s: x.view(s),
    "expand": lambda x, s: x.expand(s),
    "slice": sliced,
    "alias": lambda x: x.view_as(x),
    "unfold": lambda x, *a: x.unfold(*a),
    "max_dim": torch.max,
    "min_dim": torch.min,
    "vector_norm": torch.linalg.vector_norm,
    "repeat": lambda x, r: x.repeat(*r),
    "index": indexed,
    "index_put": lambda x, i, v, a=False: x.index_put(tuple(i), v, a),
    "embedding": lambda w, i, p=-1: F.embedding(i, w, p if p >= 0 else None),
    "one_hot": F.one_hot,
    "einsum": lambda operands, equation: torch.einsum(equation, *operands),
    "nll_loss": classes(F.nll_loss),
    "cross_entropy": classes(F.cross_entropy),
    "binary_cross_entropy": lambda x, y, w, r: F.binary_cross_entropy(x, y, w, reduction=r),
    "binary_cross_entropy_with_logits": lambda x, y, w, p, r: F.binary_cross_entropy_with_logits(
        x, y, w, pos_weight=p, reduction=r
    ),
    "dropout_mask": lambda x, m, k: x * m * (1 / k),
    "prelu_kernel": lambda x, w: torch.where(x > 0, x, w * x),
    "softmax": torch.softmax,
    "batch_norm_eval": lambda x, m, v, w, b, e: F.batch_norm(x, m, v, w, b, False, 0.1, e),
    "batch_norm_train": batch_norm_train,
    "layer_norm_rows": layer_norm,
    "group_norm_rows": group_norm,
    "attention": attention,
    "trigamma": lambda x: torch.polygamma(1, x),
    "threshold_backward": lambda g, x, t: torch.where(x <= t, 0, g),
    "leaky_relu_backward": lambda g, x, slope: aten.leaky_relu_backward(g, x, slope, False),
    "elu_backward": lambda g, x, *scales: aten.elu_backward(g, *scales, False, x),
    "hardsigmoid_backward": lambda g, x: torch.where((x > -3) & (x < 3), g * (1 / 6), 0),
    "hardswish_backward": lambda g, x: torch.where(
        x <= -3, 0, torch.where(x < 3, g * (x / 3 + 0.5), g)
    ),
    **{
        f"{name}_backward": getattr(aten, f"{name}_backward")
        for name in ("hardtanh", "hardshrink", "softplus")
    },
    "slice_backward": aten.slice_backward,
    "select_backward": aten.select_backward,
    "diagonal_backward": aten.diagonal_backward,
    "unfold_backward": aten.unfold_backward,
    **{
        f"{name}_loss": loss(getattr(F, f"{name}_loss"))
        for name in ("mse", "l1", "smooth_l1", "huber")
    },
    "kl_div": loss(F.kl_div),
    **window_references.REFERENCES,
}
# torch rounds a constant of their gradients to float32, whatever the dtype.
ROUGH = ("hardsigmoid", "celu", "hardswish")


def reference(name):
    """torch's function, or None where the operator is internal."""
    if name.endswith("_of") or name in ("detach",):
        return None
    rooms = (torch, F, torch.special)
    found = [getattr(room, name.removeprefix("special_"), None) for room in rooms]
    return REFERENCES.get(name) or next(filter(None, found), None)


def as_reals(tensor):
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def listed(tensor):
    if tensor is None:
        return None
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    tensor = as_reals(tensor)
    flat_values = tensor.detach().reshape(-1).tolist()
    if tensor.is_floating_point():
        return [float(f"{value:.11g}") for value in flat_values]
    return [int(value) for value in flat_values]


def weighed(key, tensors):
    total = 0
    for number, each in enumerate(tensors):
        if each is not None and each.requires_grad:
            each = as_reals(each)
            factors = torch.tensor(weights(f"{key} {number}", each.numel()), dtype=torch.float64)
            total = total + (each.to(torch.float64) * factors.reshape(each.shape)).sum()
    return total


def has_gradient(operator):
    return operator.differentiable and not isinstance(operator, Underivable)


def answer(key, operator, case):
    function = reference(operator.name)
    if function is None:
        return None
    given, named = arguments(key, case, make)
    given = [torch_dtype(each) if isinstance(each, Dtype) else each for each in given]
    if operator.name == "convert":
        function = lambda x, d: x.to(d)  # noqa: E731
    found = function(*given, **named)
    outs = list(found) if isinstance(found, (tuple, list)) else [found]
    record = {"shapes": [list(each.shape) for each in outs], "out": [listed(o) for o in outs]}
    inputs = flat([*given, *named.values()])
    if operator.name in ROUGH or not has_gradient(operator) or not inputs:
        return record
    total = weighed(key, outs)
    if not isinstance(total, torch.Tensor):
        return record
    grads = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    record["grad"] = [listed(each) for each in grads]
    slope = weighed(f"grad {key}", grads)
    if isinstance(slope, torch.Tensor):
        second = torch.autograd.grad(slope, inputs, allow_unused=True)
        record["second"] = [listed(each) for each in second]
    return record


DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def outcome(key, operator, case, dtype):
    """Dtypes of the results where real operands have `dtype`, or class and line of the error."""
    given, named = arguments(key, case, lambda values, drawn: cast(make(values, drawn), dtype))
    try:
        found = reference(operator.name)(*given, **named)
    except Exception as error:  # whatever torch raises is the answer
        return [type(error).__name__, str(error).split("\n")[0]]
    outs = found if isinstance(found, (tuple, list)) else [found]
    return " ".join(str(each.dtype)[6:] for each in outs)


def cast(tensor, dtype):
    """Floating operands in another dtype."""
    return tensor.detach().to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor


def record_dtypes():
    table = {}
    for key, operator, case in cases():
        name = operator.name
        if not key.endswith(" 0") or reference(name) is None or name == "convert":
            continue
        table[name] = [outcome(key, operator, case, dtype) for dtype in DTYPES]
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(table[key])}" for key in table)
    (HERE / "operator_dtypes.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def record_complex():
    """Answers where torch takes complex operands."""
    answers = {}
    for key, operator, case in complex_cases():
        if operator.name in window_references.REFERENCES:  # written out, without torch's refusals
            continue
        try:
            found = answer(key, operator, case)
        except (RuntimeError, TypeError):  # torch's refusals
            continue
        if found is not None and found["out"]:
            answers[key] = found
    write("complex_operators.json", answers)


def write(name, answers):
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(answers[key])}" for key in answers)
    (HERE / name).write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    print(len(answers), "answers in", name)


def main():
    record_dtypes()
    record_complex()
    answers = {}
    for key, operator, case in cases():
        found = answer(key, operator, case)
        if found is not None:
            answers[key] = found
    write("operators.json", answers)


if __name__ == "__main__":
    main()
