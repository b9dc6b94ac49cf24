"""torch.autograd.functional: vjp, jvp, jacobian, hessian, vhp, hvp.

Keeps     torch's conventions for tuples, for v=None, for create_graph and for strict.
Touches   gradients (entry, modes).
Not here  forward mode: jvp is two reverse passes, so second derivatives need twice-differentiable
          operators, which all recorded ones are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.errors import helped
from flambeau.gradients.entry import grad
from flambeau.gradients.members import requires_grad, set_requires_grad
from flambeau.gradients.modes import enable_grad, is_grad_enabled
from flambeau.gradients.runtime import RUNTIME

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]


def _tuple_of(value: Any, argument: str, function: str) -> tuple[bool, Tensors]:
    """(was it a tuple, the tuple); TypeError for anything but tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for position, each in enumerate(values):
        if not isinstance(each, RUNTIME.tensor):
            where = f"the value at index {position} is" if is_tuple else "it is"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors "
                f"but {where if is_tuple else 'the given ' + argument + ' has type'} "
                f"{type(each)}."
            )
    return is_tuple, values


def _inputs(values: Tensors, create_graph: bool) -> Tensors:
    """Fresh places to differentiate at: aliases inside the caller's graph, or leaves."""
    made = []
    for each in values:
        if create_graph and requires_grad(each):
            made.append(RUNTIME.functions.view(each, each._layout.shape))
        else:
            leaf = RUNTIME.alias(each)
            set_requires_grad(leaf, True)
            made.append(leaf)
    return tuple(made)


def _finished(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple([_finished(each, create_graph) for each in value])
    return value if create_graph else value.detach()


def _same(value: Tensors, is_tuple: bool) -> Any:
    return value if is_tuple else value[0]


def _check_outputs(outputs: Tensors, inputs: Tensors, strict: bool) -> None:
    if not strict:
        return
    for index, each in enumerate(outputs):
        if not requires_grad(each):
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The "
                "outputs must be computed in a differentiable manner from the input when running "
                "in strict mode."
            )


def _check_rows(rows: Tensors, strict: bool) -> None:
    """Refuse first derivatives that do not depend on the inputs."""
    for index, each in enumerate(rows):
        if strict and not requires_grad(each):
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {index} is independent of the input. This is not "
                "allowed in strict mode. You should ensure that your function is twice "
                "differentiable and that the jacobian depends on the inputs (this would be "
                "violated by a linear function for example)."
            )


def _vector(v: Any, like: Tensors, function: str, what: str) -> Tensors:
    """v as a tuple of tensors shaped like `like`; ones where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0]._layout.n_elements != 1:
            raise RuntimeError(
                "The vector v can only be None if "
                + ("the user-provided function returns a single Tensor with a single element."
                   if what == "outputs" else
                   "the input to the user-provided function is a single Tensor with a single "
                   "element.")
            )  # fmt: skip
        layout = like[0]._layout
        return (RUNTIME.functions.ones(layout.shape, dtype=layout.dtype, device=layout.device),)
    _, vectors = _tuple_of(v, "v", function)
    if len(like) == 1 and len(vectors) != 1:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vectors) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
        )
    for index, (have, want) in enumerate(zip(vectors, like, strict=True)):
        if have._layout.shape != want._layout.shape:
            prefix = f"Entry {index} in " if len(like) > 1 else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be torch.Size({list(want._layout.shape)}) but "
                f"got torch.Size({list(have._layout.shape)})."
            )
    return vectors


def _zeros_like(tensor: Any) -> Any:
    layout = tensor._layout
    return RUNTIME.functions.zeros(layout.shape, dtype=layout.dtype, device=layout.device)


def _grad(
    outputs: Tensors, inputs: Tensors, cotangents: Tensors, create_graph: bool,
    strict: str | None = None,
) -> Tensors:  # fmt: skip
    """Gradients with zeros for what is independent, which strict mode refuses."""
    kept = [(out, v) for out, v in zip(outputs, cotangents, strict=True) if requires_grad(out)]
    found: Tensors = (None,) * len(inputs)
    if kept:
        found = grad(
            [out for out, _ in kept], inputs, [v for _, v in kept],
            retain_graph=True, create_graph=create_graph, allow_unused=True,
        )  # fmt: skip
    if strict is not None:
        for index, each in enumerate(found):
            if each is None:
                raise RuntimeError(strict.format(index=index))
    return tuple([
        _zeros_like(each) if value is None else value
        for value, each in zip(found, inputs, strict=True)
    ])  # fmt: skip


_INDEPENDENT = (
    "The output of the user-provided function is independent of input {index}. This is not allowed "
    "in strict mode."
)

_OUTPUT_INDEPENDENT = (
    "Output {} of the user-provided function is independent of input {{index}}. This is not "
    "allowed in strict mode."
)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), v^T J)."""
    with enable_grad():
        is_tuple, values = _tuple_of(inputs, "inputs", "vjp")
        places = _inputs(values, create_graph)
        out_is_tuple, outputs = _tuple_of(
            func(*places), "outputs of the user-provided function", "vjp"
        )
        _check_outputs(outputs, places, strict)
        vectors = _vector(v, outputs, "vjp", "outputs")
    recording = True if create_graph else is_grad_enabled()
    with enable_grad():
        found = _grad(outputs, places, vectors, create_graph and recording,
                      _INDEPENDENT if strict else None)  # fmt: skip
    return (
        _same(_finished(outputs, create_graph), out_is_tuple),
        _same(_finished(found, create_graph), is_tuple),
    )


def along(outputs: Tensors, places: Tensors, vectors: Tensors, create_graph: bool) -> Tensors:
    """J v by differentiating u^T J with respect to u, in which it is linear."""
    cotangents = []
    for each in outputs:
        zeros = _zeros_like(each)
        set_requires_grad(zeros, True)
        cotangents.append(zeros)
    rows = _grad(outputs, places, tuple(cotangents), True)
    return _grad(rows, tuple(cotangents), vectors, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), J v), by two reverse passes."""
    with enable_grad():
        _, values = _tuple_of(inputs, "inputs", "jvp")
        vectors = _vector(v, values, "jvp", "inputs")
        places = _inputs(values, create_graph)
        out_is_tuple, outputs = _tuple_of(
            func(*places), "outputs of the user-provided function", "jvp"
        )
        _check_outputs(outputs, places, strict)
        found = along(outputs, places, vectors, create_graph)
    return (
        _same(_finished(outputs, create_graph), out_is_tuple),
        _same(_finished(found, create_graph), out_is_tuple),
    )


def _rows(number: int, output: Any, places: Tensors, create_graph: bool, strict: bool) -> list[Any]:
    """One block of the Jacobian an input: output shape x input shape."""
    layout = output._layout
    t = RUNTIME.functions
    flat = output.reshape(-1)
    collected: list[list[Any]] = [[] for _ in places]
    for index in range(layout.n_elements):
        found = _grad((flat[index],), places, (t.ones((), dtype=layout.dtype),), create_graph,
                      _OUTPUT_INDEPENDENT.format(number) if strict else None)  # fmt: skip
        for block, value in zip(collected, found, strict=True):
            block.append(value)
    blocks: list[Any] = []
    for block, place in zip(collected, places, strict=True):
        shape = (*layout.shape, *place._layout.shape)
        if block:
            blocks.append(t.stack(block).reshape(shape))
        else:
            blocks.append(t.zeros(shape, dtype=layout.dtype))
    return blocks


def _check_strategy(strategy: str, vectorize: bool, strict: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    refused = "torch.autograd.functional.jacobian: `strict=True` and "
    if strict and strategy == "forward-mode":
        raise RuntimeError(
            f'{refused}`strategy="forward-mode"` are not supported together (yet). Please either '
            'set `strict=False` or `strategy="reverse-mode"`.'
        )
    if strict and vectorize:
        raise RuntimeError(
            f"{refused}`vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            helped(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
                "only implemented for `vectorize=True`.",
                fix="vectorize=True, or leave the strategy out",
            )
        )


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """d func(inputs) / d inputs, a block for each pair of output and input.

    vectorize and strategy are accepted; rows are computed one by one in reverse.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    _check_strategy(strategy, vectorize, strict)
    with enable_grad():
        is_tuple, values = _tuple_of(inputs, "inputs", "jacobian")
        places = _inputs(values, create_graph)
        out_is_tuple, outputs = _tuple_of(
            func(*places), "outputs of the user-provided function", "jacobian"
        )
        _check_outputs(outputs, places, strict)
        blocks = tuple([
            _same(tuple(_finished(each, create_graph) for each in
                        _rows(number, output, places, create_graph, strict)), is_tuple)
            for number, output in enumerate(outputs)
        ])  # fmt: skip
    return _same(blocks, out_is_tuple)


def _scalar(value: Any, function: str) -> Any:
    is_tuple, outputs = _tuple_of(value, "outputs of the user-provided function", function)
    if is_tuple or not isinstance(value, RUNTIME.tensor):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0]._layout.n_elements != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return value


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Second derivatives of a scalar function, a block for each pair of inputs."""
    is_tuple, values = _tuple_of(inputs, "inputs", "hessian")

    def gradient(*places: Any) -> Any:
        value = _scalar(func(*places), "hessian").squeeze()
        _check_outputs((value,), places, strict)
        ones = (ones_like(value),)
        rows = _grad((value,), places, ones, True, _INDEPENDENT if strict else None)
        _check_rows(rows, strict)
        return rows

    _check_strategy(outer_jacobian_strategy, vectorize, strict)
    blocks = jacobian(gradient, values, create_graph, strict)
    return blocks if is_tuple else blocks[0][0]


def ones_like(value: Any) -> Any:
    """Ones in the shape of a tensor."""
    layout = value._layout
    return RUNTIME.functions.ones(layout.shape, dtype=layout.dtype, device=layout.device)


def _times_hessian(
    name: str, product: Callable[..., Tensors], func: Callable[..., Any], inputs: Any, v: Any,
    create_graph: bool, strict: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), the product of v and the rows' derivative)."""
    with enable_grad():
        is_tuple, values = _tuple_of(inputs, "inputs", name)
        vectors = _vector(v, values, name, "inputs")
        places = _inputs(values, create_graph)
        value = _scalar(func(*places), name)
        _check_outputs((value,), places, strict)
        rows = _grad((value,), places, (ones_like(value),), True)
        _check_rows(rows, strict)
        found = product(rows, places, vectors, create_graph)
    return _finished(value, create_graph), _same(_finished(found, create_graph), is_tuple)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), v^T H) of a scalar function."""
    return _times_hessian("vhp", _grad, func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), H v) of a scalar function.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0])
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, 2 * x)
    (tensor(1.), tensor([12.]))
    """
    return _times_hessian("hvp", along, func, inputs, v, create_graph, strict)


# By these names libraries that compute Jacobians of their own take the parts.


def _as_tuple(inp: Any, arg_name: Any = None, fn_name: Any = None) -> tuple[bool, Tensors]:
    return _tuple_of(inp, arg_name, fn_name)


_grad_postprocess = _finished


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    if not isinstance(to_unpack, tuple):
        return _same(res, to_unpack)
    outer, inner = to_unpack
    return _same(tuple(_same(each, inner) for each in res), outer)


def _construct_standard_basis_for(tensors: Tensors, tensor_numels: tuple[int, ...]) -> Tensors:
    eye = RUNTIME.functions.eye(sum(tensor_numels), dtype=tensors[0].dtype)
    return tuple(eye.split(tensor_numels, 1))
