"""Small programs whose results tests/tensor compares with what torch says.

Keeps     a case is one line: statements, then an expression; names: torch, np, copy, pickle and
          the tensors of SETUP, made anew for each case.
Touches   nothing.
Not here  recording (record_tensor.py), comparing (tests/tensor/test_recorded.py)."""

# ruff: noqa: E501 - a line is a case

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

SETUP = (
    "x = torch.arange(12.).reshape(3, 4)",
    "v = torch.arange(3.)",
    "z = torch.tensor(1.)",
    "y = torch.arange(120).reshape(2, 3, 4, 5)",
    "i = torch.zeros(3, dtype=torch.int64)",
    "T = torch.tensor",
    "w = torch.arange(12.).reshape(3, 4).requires_grad_(True)",
    "s = slice",
)

KEYS = (
    "0", "-1", "5", "-4", "(0, 5)", "(0, 0, 0)", "(1, 2)", "(s(None), 1)",
    "(s(1, None), s(None, None, 2))", "s(1, 3)", "s(-2, None)", "s(5, 2)", "1.5", "(1, 1.5)",
    "s(None, None, -1)", "s(1.0, 2)", "[0, 1]", "[[0, 1], [1, 2]]", "[0.5]", "[]",
    "[True, False, True]", "[True]", "(True,)", "True", "False", "T(1)", "T([0, 5])", "T([0.5])",
    "T([True, False])", "T([[True, False]])", "T([1, 0, 1], dtype=torch.uint8)", "T(True)",
    "(s(None), T(True))", "np.int64(1)", "np.array([0, 1])", "np.array([True, False, True])",
    "[s(None), 1]", "[None]", "(Ellipsis, 0)", "(Ellipsis, Ellipsis)", "(None, 1, None)",
    "(0, [0, 1])", "([0, 1], [0, 1, 2])", "([0, 1], s(None), None)", "(T([0, 1]), None, T([0, 1]))",
    "{}", "(s(None), [0, -5])", "T([[0]])", "T([-1, -3])", "range(2)", "T([1], dtype=torch.int16)",
    "T([1], dtype=torch.int32)", "x > 5", "(s(None), T([True, False, True, True]))",
    "(x > 3)[:, 0]", "(T([0, 1]), s(1, 3))", "None", "Ellipsis", "()", "'a'", "(s(1, 2), None, 0)",
)  # fmt: skip
KEYS_4D = (
    "(T([0, 1]), s(None), T([1, 2]))", "(s(None), T([0, 1]), T([1, 2]))",
    "(s(None), T([[0, 1]]), s(None), T([1, 2]))", "(0, s(None), T([1, 2]))",
    "(s(None), 0, s(None), T([1]))", "(T([0]), Ellipsis, T([1, 2]))", "(Ellipsis, T([1, 2]))",
    "(0, y[0, :, :, 0] > 20)", "(s(None), y[0, :, :, 0] > 20, 1)", "(1, None, Ellipsis, s(1, 4, 2))",
    "(s(None), y[0, :, :, 0] > 20, s(None, None, 3))",
)  # fmt: skip
WRITES = (
    "[0] = torch.ones(4)", "[:, 1] = 7", "[1, 2] = 3.5", "[0] = torch.ones(3)",
    "[0] = torch.ones(1, 1, 4)", "[0] = torch.ones(2, 4)", "[0] = 1e40", "[0] = 'a'",
    "[0] = [1, 2, 3, 4]", "[0:2] = torch.ones(4).double()", "[T([0, 1])] = torch.ones(3)",
    "[T([0, 1])] = torch.ones(2, 4).double()", "[T([0, 1])] = 5", "[x > 5] = 0.",
    "[x > 5] = torch.ones(2)", "[x > 5] = torch.ones(6)", "[v > 1] = torch.ones(4)", "[0] = 1j",
    "[0] = None", "[True] = 3.", "[False] = 3.", "[x > 5] = T(2)", "[x > 5] = T(2.).double()",
    "[5] = 0", "[[0, 1]] = torch.ones(1, 2, 4)", "[T([0, 7])] = 1.", "[0] = np.ones(4)",
    "[0] = np.float64(3)", "[0] = True", "[0, 1] = T([2.])", "[0, 1] = T([2., 3.])",
    "[T([0.1])] = 1", "[:, [0, 2]] = T([5., 6.])", "[[0, 1], [1, 1]] = 9.", "[:] = 0", "[...] = 2.",
    "[..., 0] = T([1., 2., 3.])", "[:, T([True, False, True, False])] = -1", "[1:][0] = 4",
    "[None, 1] = 8", "[T([1, 1])] = T([[1.], [2.]])", "[1] = x[0]", "[1:] = x[:-1]", "[0] = x[0]",
    "[:, 0] = x[0, :3]", "[:, :2] = x[:, 2:]",
)  # fmt: skip
INTEGER_WRITES = (
    "c = i; c[0] = 1.7; c", "c = i; c[0] = T(1.7); c", "c = i; c[T([0])] = 1.7; c",
    "c = i.int(); c[0] = 2**40; c", "c = i.byte(); c[0] = -1; c", "c = i; c[0] = float('nan'); c",
    "c = i.byte(); c[0] = 300; c", "c = i.byte(); c[T([0])] = 300; c", "c = i.bool(); c[0] = 5; c",
    "c = i; c[i == 0] = 1.5; c",
)  # fmt: skip
READS_WITH_GRADIENT = (
    "u[1]", "u[1, 2]", "u[1:]", "u[:, 1] ** 2", "u[T([0, 0, 2])] ** 2", "u[u > 5] ** 2",
    "u[None, ..., 1:3]", "u[[0, 1], [2, 2]] ** 2", "u[1:, ::2] ** 2", "u[...] * 2",
)  # fmt: skip
WRITES_WITH_GRADIENT = (
    "q[1] = (q[0] * 3).clone()", "q[1] = 5.", "q[:, 1] = 2.", "q[T([1, 2])] = (q[0] * 3).clone()",
    "q[T([1, 2])] = 1.", "q[q > 5] = 0.", "q[0] = q[1]", "q[1, 1:3] = q[0, :2] + q[2, 2:]",
)  # fmt: skip

GROUPS: dict[str, tuple[str, ...]] = {
    "reading": tuple(f"r = x[{key}]; r, r.stride(), r.storage_offset()" for key in KEYS),
    "reading of four dims": tuple(f"r = y[{key}]; r, r.stride()" for key in KEYS_4D),
    "reading without dims": tuple(
        f"z[{key}]"
        for key in ("0", "s(None)", "...", "None", "True", "False", "()", "(None, 0)", "T(True)",
                    "[0]", "T([0])")
    ),
    "writing": tuple(f"x{write}; x" for write in WRITES) + INTEGER_WRITES,
    "gradients": tuple(
        f"u = w * 1; ({read}).sum().backward(); w.grad" for read in READS_WITH_GRADIENT
    )
    + tuple(
        f"q = w * 2; {write}; (q * q).sum().backward(); w.grad" for write in WRITES_WITH_GRADIENT
    ),
    "masks": (
        "torch.nonzero(x > 5)", "x[x > 5]", "x[x < 0]", "x.t()[x.t() > 5]",
        "torch.nonzero(T([[1, 0], [0, 2]]), as_tuple=True)", "torch.nonzero(T(3))",
        "torch.nonzero(T(3), as_tuple=True)", "torch.where(T([True, False]))",
        "torch.masked_select(torch.arange(4), torch.arange(4) > 1)", "torch.nonzero(torch.zeros(0, 3))",
        "torch.nonzero_static(T([0, 1, 1]), size=4)", "torch.nonzero_static(T([0, 1, 1]), size=1)",
        "a = torch.arange(200000); a[a % 7 == 3].sum()", "y[y % 7 == 0]",
        "a = torch.arange(70000).reshape(100, 700); n = torch.nonzero(a % 11 == 5); n.sum(0), n[-1]",
        "torch.masked_select(x, T([1.]))", "x[(x > 5).any(1)]", "torch.argwhere(v > 0)",
    ),
    "fills": (
        "torch.zeros(2.0)", "torch.zeros((2, 2.0))", "torch.zeros('a')", "torch.zeros()",
        "torch.zeros(2, 'a')", "torch.zeros(2, dtype='a')", "torch.zeros(2, foo=1)",
        "torch.zeros(2, 3)", "torch.zeros((2, 3), dtype=torch.int32)", "torch.zeros(T(2))",
        "torch.full((2,), 300, dtype=torch.uint8)", "torch.full((2,), -3, dtype=torch.uint8)",
        "torch.full((2,), 1e40, dtype=torch.float32)", "torch.full((2,), float('nan'), dtype=torch.int32)",
        "torch.full((2,), 1e5, dtype=torch.half)", "torch.full(2, 1)", "torch.full((2,), 'a')",
        "torch.full((2,), T(2))", "torch.full((2,), 1j)", "torch.full((2,), T([2, 3]))",
        "torch.full((2,), True)", "torch.full((2,), 2.5)", "torch.arange(0)", "torch.arange(1, 5, 0)",
        "torch.arange(5, 1)", "torch.arange(0, float('inf'))", "torch.arange(0, 1, 0.1)",
        "torch.arange(0, 5.5, dtype=torch.int64)", "torch.arange(start=1, end=3)", "torch.arange()",
        "torch.arange('a')", "torch.arange(T(3))", "torch.arange(3, dtype=torch.bool)",
        "torch.arange(5, out=torch.empty(0))", "torch.arange(5, 0, -2)", "torch.linspace(0, 1, -1)",
        "torch.linspace(0, 1)", "torch.linspace(0, 1, 1)", "torch.linspace(0, 10, 5, dtype=torch.int64)",
        "torch.linspace(T(0.), 1, 3)", "torch.linspace(1, 5, 5)", "torch.linspace(0.5, -2, 7)",
        "torch.logspace(0, 2, 3)", "torch.logspace(0, 2, 3, base=2.0)", "torch.eye(2)",
        "torch.eye(2, 3)", "torch.eye(-1)", "torch.eye(2, -1)", "torch.eye(2, dtype=torch.bool)",
        "torch.zeros(2, device='cuda')", "torch.zeros(2, requires_grad=True)", "torch.scalar_tensor(3)",
        "torch.zeros_like([1])", "torch.scalar_tensor(3, dtype=torch.int32)", "x.new_zeros(2)",
        "x.new_full((2,), 3)", "x.new_tensor([1, 2])", "x.new_ones(3, dtype=torch.int64)",
        "i.fill_(1.5)", "torch.full_like(x.t(), 3.).stride()", "torch.zeros_like(x, dtype=torch.int8)",
        "torch.zeros(3, out=torch.ones(3))", "torch.zeros(0, 3)", "torch.ones(2, dtype=torch.complex64)",
        "torch.zeros(2, dtype=torch.bfloat16) + 1", "torch.zeros(2, 3).new_empty(4, 5).shape",
    ),
    "queries": (
        "torch.finfo(torch.float32)", "torch.finfo()", "torch.iinfo(torch.uint8)",
        "torch.finfo(torch.int32)", "torch.iinfo(torch.float32)", "torch.finfo(torch.bfloat16)",
        "torch.iinfo(torch.bool)", "torch.finfo(torch.float16).tiny", "torch.finfo(torch.float64).eps",
        "torch.promote_types(torch.int8, 1)", "torch.result_type(i.int(), 1.0)",
        "torch.result_type(1, 2.)", "torch.can_cast(torch.double, torch.int)",
        "torch.equal(torch.ones(2), torch.ones(2).double())", "torch.equal(torch.ones(2), torch.ones(3))",
        "torch.allclose(torch.ones(2), torch.ones(2) * 1.000001)", "torch.equal(T([float('nan')]), T([float('nan')]))",
        "torch.broadcast_shapes((2, 1), (3,))", "torch.broadcast_shapes((2, 1), (3, 3))",
        "torch.broadcast_shapes(2, (3, 2))", "torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))",
        "torch.typename(torch.ones(2))", "torch.typename(torch.float)", "torch.ones(2).type()",
        "torch.ones(2).type('torch.DoubleTensor')", "torch.ones(2).type(torch.IntTensor)",
        "torch.ones(2).type(torch.int8)", "torch.is_nonzero(torch.ones(2))",
        "torch.is_nonzero(torch.ones(()))", "torch.LongTensor([1, 2])", "torch.FloatTensor([1, 2])",
        "torch.LongTensor([1.5])", "torch.FloatTensor(torch.ones(2))", "torch.FloatTensor",
        "isinstance(torch.ones(2), torch.FloatTensor), isinstance(torch.ones(2), torch.LongTensor)",
        "torch.FloatTensor()", "torch.Tensor(2.5)", "torch.Tensor([1, 2])", "torch.Tensor('a')",
        "torch.channels_last, torch.strided, torch.contiguous_format, x.layout", "torch.numel([1])",
        "torch.is_floating_point(1)", "torch.set_default_dtype(torch.int32)", "torch.set_num_threads(0)",
        "torch.set_num_threads(1.5)", "torch.get_float32_matmul_precision()", "torch.ones(2).is_set_to(v)",
        "torch.compile(lambda a: a)(3)", "torch.is_tensor(v), torch.is_tensor(3)",
    ),
    "forms": (
        "torch.max(v)", "torch.max(x, 1)", "torch.max(v, T([1., 1., 1.]))", "torch.max(x, dim=1, keepdim=True).values",
        "torch.max(v, 2.)", "torch.max()", "T([1, 2]).max(0)", "torch.min(x)", "x.min(0)",
        "torch.where(T([True, False]), 1, 2.)", "torch.where(T([True, False]), torch.ones(2), 0)",
        "torch.where(T([1.]), 1, 2)", "x.where(x > 2, -1)",
        "torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')",
        "torch.meshgrid(torch.arange(2), torch.arange(3), indexing='xy')",
        "torch.std(T([1., 2., 4.]), False)", "T([1., 2., 4.]).std(0, False)",
        "T([1., 2., 4.]).var(unbiased=False)", "T([1., 2., 4.]).std(0, True, True)",
        "torch.tensordot(x, x.t(), 1)", "torch.tensordot(x, x, dims=([0, 1], [0, 1]))",
        "torch.tensordot(x, x, 1)", "torch.einsum('ij,kj->ik', x, x)", "torch.inner(x, x)",
        "torch.kron(x, torch.ones(1, 2))", "torch.trace(x)", "torch.atleast_3d(v)", "torch.rot90(x)",
        "torch.rot90(x, 2)", "x.fliplr()", "torch.hsplit(x, 2)", "torch.vsplit(x, 3)", "torch.hsplit(x, 3)",
        "torch.column_stack([x[:, 0], x])", "torch.dstack([x, x])", "torch.diag(v)", "torch.diag(x)",
        "torch.diag_embed(x, 1)", "torch.block_diag(x, torch.ones(1, 1))", "torch.tril_indices(2, 3)",
        "torch.triu_indices(2, 3, 1)", "torch.take_along_dim(x, T([[0], [1], [2]]), 1)",
        "torch.repeat_interleave(x, 2, 0)", "torch.repeat_interleave(v, T([1, 2, 0]))",
        "torch.repeat_interleave(T([1, 2]))", "torch.cartesian_prod(torch.arange(2), torch.arange(2))",
        "torch.combinations(torch.arange(3))", "torch.diff(x)", "torch.trapezoid(x)",
        "torch.isin(torch.arange(3), T([1, 5]))", "x.expand_as(torch.ones(4, 3, 4)).shape",
        "torch.norm(x)", "torch.norm(x, dim=1)", "x.norm(1)", "torch.split(x, 3, 1)", "torch.chunk(x, 2)",
        "x.split([1, 3], 1)", "x.sum_to_size(1, 4)", "x.sum_to_size(2, 4)",
        "torch.unique(T([[1, 2], [1, 2], [0, 5]]), dim=0, return_counts=True, return_inverse=True)",
        "torch.unique_consecutive(T([[1, 2], [1, 2], [0, 5]]), dim=0)",
        "torch.unique_consecutive(T([1, 1, 2, 2, 1]), return_counts=True)",
    ),
    "members": (
        "torch.ones(2).storage()", "torch.ones(2).untyped_storage()", "v.apply_(lambda a: a + 1)",
        "v.map_(v, lambda a, b: a + b)", "w.apply_(lambda a: a)", "reversed(torch.arange(3))",
        "2 @ torch.ones(2)", "5 // T([2.])", "5 % T([2.])", "1 << T([2])", "x.dim_order()",
        "w.__dlpack__()", "x.view(torch.int32)", "x.view(torch.uint8)[0]",
        "torch.ones(2, 3).view(torch.float64)", "x.view(4, 3)", "x.view(-1)", "x.t().view(12)",
        "x.view((4, 3))", "pickle.loads(pickle.dumps(x))", "copy.deepcopy(x[0])", "copy.copy(x)",
        "pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True)))",
        "copy.deepcopy(torch.ones(2, requires_grad=True) * 2)", "x.t_()", "x.unsqueeze_(0)",
        "x.transpose_(0, 1)", "x.resize_(2, 2)", "x.resize_(0)", "w.t_()", "np.asarray(x)",
        "np.array(x) + 1", "torch.from_dlpack(np.arange(3.))", "np.from_dlpack(torch.arange(3))",
        "x.real", "np.sin(v)", "list(v)", "2 in v", "float(z), int(z), bool(z)", "bool(v)", "len(z)",
        "[10, 20, 30][T(1)]", "iter(z)", "'%.2f' % z", "a = x.data; a.fill_(3); x._version, x[0, 0]",
        "a = x.detach(); a.add_(1); x._version", "x.type_as(i)", "x.to(torch.float64).dtype",
    ),
    "memory shared with NumPy": (
        "a = np.arange(4.); t = torch.from_numpy(a); u = t + 1; a[:] = 10; u, t",
        "a = np.arange(4.); t = torch.from_numpy(a); t.add_(1); a",
        "a = np.arange(4.); t = torch.from_numpy(a); b = t.numpy(); b[0] = 99; t, a",
        "a = np.arange(4.); t = torch.from_numpy(a); u = t * 2; t.zero_(); u, a",
        "p = torch.arange(4.) * 2; q = p + 1; n = p.numpy(); n[0] = 7; p, q",
        "p = torch.arange(4.) * 2; n = p.numpy(); p.mul_(2); n",
        "p = torch.arange(4.) * 2; n = p.numpy(); u = p + 0; n[1] = -1; u, p",
        "p = torch.arange(4.); m = p[1:3].numpy(); m[0] = 55; p[1:3].add_(1); p, m",
        "p = torch.arange(4.); n = p.numpy(); p[0] = 123.; n",
        "p = torch.arange(4.); n = p.numpy(); p[1:] = torch.ones(3); n",
        "k = np.array([0, 1]); t = torch.from_numpy(k); d = torch.arange(5.); r = d[t]; k[0] = 4; r, d[t]",
        "k = np.array([0, 1]); t = torch.from_numpy(k); d = torch.arange(5.); r = d[t]; k[0] = 9; d[t]",
        "a = np.arange(4.); p = torch.from_numpy(a[:3]); q = torch.from_numpy(a[1:]); p.fill_(5.); q",
        "a = np.arange(4.); p = torch.from_numpy(a[:3]); q = torch.from_numpy(a[1:]); u = q + 1; p.zero_(); u, q",
        "b = bytearray(8); t = torch.frombuffer(b, dtype=torch.float32); t.fill_(1.); bytes(b)",
        "b = bytearray(8); t = torch.frombuffer(b, dtype=torch.float32); t.fill_(1.); b[0:4] = bytes(4); t",
        "w.numpy()", "torch.ones(2).bfloat16().numpy()",
        "g = torch.ones(2, requires_grad=True); n = g.detach().numpy(); n[0] = 5; g",
        "torch.from_numpy([1])", "torch.from_numpy(np.array(['a']))", "torch.from_numpy(np.arange(4.)[::-1])",
        "torch.from_numpy(np.arange(3, dtype='>i4'))", "torch.frombuffer(b'', dtype=torch.int8)",
        "torch.frombuffer(bytearray(7), dtype=torch.int32)",
        "torch.frombuffer(bytearray(8), dtype=torch.int32, offset=9)",
        "torch.frombuffer(bytearray(8), dtype=torch.int32, count=3)",
        "a = np.zeros((2, 3), order='F', dtype=np.float32); t = torch.from_numpy(a); t[1, 2] = 5; t.t()[0] = 1; a, t.stride()",
        "a = np.zeros(1 << 18); t = torch.from_numpy(a); u = t + 1; a[:] = 3; u[:2], t[:2]",
        "k = torch.zeros(3); n = k.numpy(); k += 1; k.copy_(torch.arange(3.)); n",
        "k = torch.zeros(3); n = k.numpy(); k.data.fill_(4); n",
        "k = torch.zeros(3); n = k.numpy(); torch.add(k, 1, out=k); n",
        "m = np.zeros(3); torch.as_tensor(m).data_ptr() == m.ctypes.data, torch.tensor(m).data_ptr() == m.ctypes.data",
        "m = np.zeros(3); torch.asarray(m).data_ptr() == m.ctypes.data",
    ),
}  # fmt: skip


def outcome(case: str, torch: Any) -> str:
    """What a case gives: its repr, or the exception's class and first line."""
    import numpy as np

    names: dict[str, Any] = {"torch": torch, "np": np, "copy": copy, "pickle": pickle}
    head, _, tail = case.rpartition("; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in SETUP:
                exec(line, names)
            exec(head, names)
            return repr(eval(tail, names))
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
