"""Expressions, and what a subclass of Tensor sees of them: overrides.json has torch's answers.

Keeps     names in an expression: x plain, s a subclass, d of a class beside Tensor, i and si
          indices, m a mask of the subclass; all are made anew for each.
Touches   nothing.
Not here  recording (record_overrides.py), comparing (tests/tensor/overriding/test_recorded.py)."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

CASES = (
    's+s', 'x+s', 's+x', 's+2', '2+s', 'x+d', 'd+x', 'x*d', 'x-s', '2-s', '2/s', 'x/s', 's/x',
    '2**s', 'x**s', 's@x', 'x@s', '-s', 'abs(s)', 's<x', 'x<s', 'x==s', 's==2', '~m', 'm&m',
    'True&m', 's//2', '2//s', '2%s', 's+=1', 'x+=s', 'x[si]', 's[0]', 'x[m]', 'x[0]=s[0]',
    'x[si]=1', 's[0]=1', 'x[m]=1', 's.shape', 's.T', 's.grad', 's.data', 's.requires_grad',
    's.is_leaf', 's.dtype', 's.grad=None', 's.data=x', 'x.data=s', 'x.grad=s',
    's.requires_grad=True', 's.ndim', 's.real', 's.size()', 's.dim()', 'len(s)', 'list(s)',
    'bool(s[0,0])', 'float(s[0,0])', 'int(s[0,0])', 's[0,0].item()', 's.tolist()', 's.numpy()',
    'hash(s)', 's.detach()', 's.clone()', 's.to(torch.float64)', 'x.to(s)', 'x.type_as(s)',
    's.float()', 's.double()', 's.cpu()', 's.contiguous()', 's.type()', 's.storage()',
    's.untyped_storage()', 's.data_ptr()', 's.as_subclass(torch.Tensor)', 's.new_zeros(2)',
    's.requires_grad_()', 'torch.add(s,x)', 'torch.add(x,s,out=x)', 'torch.add(x,x,out=s)',
    'torch.max(s,0)', 'torch.max(x,s)', 'torch.split(s,1)', 's.split(1)', 'torch.chunk(s,2)',
    's.unbind()', 'torch.unbind(s)', 'torch.cat([x,s])', 'torch.stack([s,x])',
    'torch.where(m,x,x)', 'torch.where(m)', 'torch.nonzero(s)', 'F.relu(s)', 'F.linear(x,s)',
    'F.linear(x,x,s[0])', 'F.dropout(s)', 'F.softmax(s,-1)', 'F.cross_entropy(s,i.repeat(2))',
    'F.mse_loss(x,s)', 'F.conv1d(s[None],x[None])', 'F.embedding(si,x)', 'torch.ones_like(s)',
    'torch.zeros_like(s)', 'torch.empty_like(s)', 'torch.rand_like(s)', 'torch.tensor(s)',
    'torch.as_tensor(s)', 'torch.numel(s)', 'torch.is_tensor(s)', 'torch.allclose(s,x)',
    'torch.equal(s,x)', 'torch.sum(s)', 'torch.exp(d)', "torch.einsum('ij,jk->ik',s,x)",
    'torch.linalg.svd(s)', 'torch.fft.fft(s)', 'torch.nn.Linear(2,2)(s)', 'torch.nn.Parameter(s)',
    's.max(0)', 's.sort()', 'torch.sort(s)', 'torch.topk(s,1)', 's.unique()', 'torch.unique(s)',
    's.norm()', 'torch.norm(s)', 'torch.meshgrid(s[0],s[0])', 'torch.broadcast_tensors(s,x)',
    'torch.tensordot(s,x,1)', 'torch.cdist(s,x)', 'torch.result_type(s,x)',
    'torch.nn.utils.clip_grad_norm_([s],1.)', 'torch.nn.init.zeros_(s)', 'torch.isnan(s)',
    's.__len__()', 's.__contains__(1)', '1 in s', 'reversed(s)', 's.__array__()',
    "__import__('numpy').asarray(s)", "__import__('numpy').add(s,1)",
    "__import__('pickle').dumps(s)", 's.is_shared()', 's.element_size()', 's.stride()',
    's.storage_offset()', 's.is_floating_point()', 'torch.is_floating_point(s)',
    's.expand(2,2,2)', 's.view(4)', 's.reshape(4)', 's.fill_(1)', 's.copy_(x)', 'x.copy_(s)',
    's.zero_()', 's.uniform_()', 'torch.bernoulli(s)', 'torch.multinomial(s,1)', 'torch.ones(2)',
    'L([1,2.])', 'L(2,3)', 'L(x)', 'torch.Tensor._make_subclass(L,x)', 'type(s)(x)',
    's.new_tensor([1])', 's.new(2)', 's.apply_(lambda v:v)', 's.index_select(0,si)',
    'x.index_select(0,si)', 's.scatter_(0,i[None],1.)', 'x.masked_fill(m,0)',
    'torch.overrides.has_torch_function((s,))', 's.grad_fn', 's.output_nr', 's.is_sparse',
    's.layout', 's.itemsize', 's.nbytes', 's.H', 's.mT', 's.retains_grad', 's.is_cuda',
    's.is_quantized', 's.is_meta', 'torch.empty(0).set_(s)', 'x.set_(s)', 'x.resize_as_(s)',
    'x.expand_as(s)', 'x.view_as(s)', 'torch.full_like(s,1)', 'torch.randint_like(s,3)',
    'torch.split(s, 1)', 's.dim_order()', 's.is_contiguous()', 's.get_device()',
    's.nelement()', 's.is_set_to(x)',
)  # fmt: skip


def outcome(case: str, torch: Any) -> list[Any]:
    """(functions seen with the types given, type of the result or of the exception)."""
    overrides = importlib.import_module(torch.__name__ + ".overrides")
    seen: list[tuple[str, list[str]]] = []

    def see(func: Any, types: Any) -> None:
        name = str(overrides.resolve_name(func)).replace("torch.functional.", "torch.")
        seen.append((name, [each.__name__ for each in types]))

    class Sub(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            see(func, types)
            return super().__torch_function__(func, types, args, kwargs)

    class Duck:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            see(func, types)
            return NotImplemented

    x, i = torch.ones(2, 2), torch.tensor([0])
    mask = torch.ones(2, 2, dtype=torch.bool)
    names = {
        "torch": torch, "F": torch.nn.functional, "L": Sub, "x": x, "i": i, "d": Duck(),
        "s": torch.ones(2, 2).as_subclass(Sub), "si": i.as_subclass(Sub),
        "m": mask.as_subclass(Sub),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(case, "case", "eval")
        except SyntaxError:
            code = compile(case, "case", "exec")
        try:
            result = tree(eval(code, names))
        except Exception as error:
            result = f"{type(error).__name__}: {str(error)[:60].splitlines()[0]}"
    return [[list(each) for each in seen], result]


def tree(result: Any) -> Any:
    """Names of the types of a result and what is in it."""
    if isinstance(result, (tuple, list)):
        return [type(result).__name__, *[tree(each) for each in result]]
    return type(result).__name__
