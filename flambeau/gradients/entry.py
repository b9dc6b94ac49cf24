"""backward() and grad(): argument checks, implicit ones, what is returned.

Keeps     torch's errors, raised before anything runs.
Touches   backward, members, runtime.
Not here  the walk itself (backward.py)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau.base.errors import helped
from flambeau.gradients.backward import place, reached, run_backward
from flambeau.gradients.graph import AccumulateGrad, Node, Output, exposed
from flambeau.gradients.hooks import retain_grad
from flambeau.gradients.members import history
from flambeau.gradients.runtime import RUNTIME


class GradientEdge(NamedTuple):
    """A place in a graph without its tensor: usable as an output or input of grad()."""

    node: Node
    output_nr: int
    ownership_token: Any = None

    def history(self) -> Any:
        """The history that a tensor at this place has."""
        if self.node.no_cotangents() is None:
            return self.node
        return Output(self.node, self.output_nr)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The place in the graph where the tensor's gradient arrives."""
    own = history(tensor)
    if own is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")  # fmt: skip
    node = own if own.__class__ is AccumulateGrad else exposed(own)
    return GradientEdge(node, own.output_index)


def _histories(places: Sequence[Any]) -> list[Any]:
    return [each.history() if isinstance(each, GradientEdge) else history(each) for each in places]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (RUNTIME.tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def _gradients(outputs: Sequence[Any], given: Any) -> list[Any]:
    """One cotangent an output: the given one, checked, or ones for a scalar."""
    if given is None:
        given = (None,) * len(outputs)
    elif isinstance(given, RUNTIME.tensor):
        given = (given,)
    else:
        given = tuple(given)
    if len(given) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return [_gradient(index, output, grad)
            for index, (output, grad) in enumerate(zip(outputs, given, strict=False))]  # fmt: skip


def _gradient(index: int, output: Any, grad: Any) -> Any:
    if isinstance(output, GradientEdge):
        if grad is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return grad
    layout = output._layout
    if grad is None:
        return _ones(output, layout) if history(output) is not None else None
    if not isinstance(grad, RUNTIME.tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    have = grad._layout
    if have.shape != layout.shape:
        raise RuntimeError(
            helped(
                f"Mismatch in shape: grad_output[{index}] has a shape of "
                f"torch.Size({list(have.shape)}) and output[{index}] has a shape of "
                f"torch.Size({list(layout.shape)}).",
                fix="give one gradient value for each element of the output",
            )
        )
    if have.dtype.is_complex != layout.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{index}] has a dtype of {have.dtype} and "
            f"output[{index}] has a dtype of {layout.dtype}."
        )
    return grad if have.dtype is layout.dtype else grad.to(layout.dtype)


def _ones(output: Any, layout: Any) -> Any:
    if layout.n_elements == 1 and layout.dtype.category == 2:
        return RUNTIME.ones(layout)
    if layout.n_elements != 1:
        raise RuntimeError(
            helped(
                "grad can be implicitly created only for scalar outputs",
                given=f"an output of shape {layout.shape}",
                fix="reduce it (y.sum().backward()), or say y.backward(gradient)",
            )
        )
    raise RuntimeError(
        f"grad can be implicitly created only for real scalar outputs but got {layout.dtype}"
    )


def _roots(outputs: Sequence[Any], given: Any) -> list[tuple[Any, Any]]:
    gradients = _gradients(outputs, given)
    roots = []
    for index, (own, grad) in enumerate(zip(_histories(outputs), gradients, strict=True)):
        if own is None:
            raise RuntimeError(
                helped(
                    f"element {index} of tensors does not require grad and does not have a grad_fn",
                    fix="set requires_grad=True on a leaf it is computed from, outside no_grad",
                )
            )
        roots.append((own, grad))
    return roots


def _batches(outputs: Sequence[Any], given: Any) -> list[Any]:
    """The cotangents of a batched call, whose first dims are those of the batch."""
    batches = [given] if isinstance(given, RUNTIME.tensor) else list(given or ())
    if not batches or any(each is None for each in batches):
        raise RuntimeError(
            helped(
                "grad can be implicitly created only for scalar outputs",
                given="is_grads_batched=True without a batch of grad_outputs for each output",
                fix="give grad_outputs with one more dim, the batch, at the front",
            )
        )
    for index, (output, batch) in enumerate(zip(outputs, batches, strict=False)):
        shape, want = batch._layout.shape, output._layout.shape
        if shape[1:] != want or not shape:
            raise RuntimeError(
                helped(
                    "If `is_grads_batched=True`, we interpret the first dimension of each "
                    "grad_output as the batch dimension. The sizes of the remaining dimensions are "
                    "expected to match the shape of corresponding output, but a mismatch was "
                    f"detected: grad_output[{index}] has a shape of torch.Size({list(shape)}) and "
                    f"output[{index}] has a shape of torch.Size({list(want)}).",
                    fix="give grad_outputs with one more dim, the batch, at the front",
                )
            )
    return batches


def _grads_of_batch(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool, named: dict[str, Any]
) -> tuple[Any, ...]:
    """One backward pass a row of the batch, all in one stream; results are stacked."""
    outputs = _as_tuple(outputs)
    batches = _batches(outputs, grad_outputs)
    count = batches[0]._layout.shape[0]
    if not count:
        given = _as_tuple(inputs)
        return tuple([_zeros((0, *each._layout.shape), each._layout) for each in given])
    rows = [
        grad(
            outputs, inputs, [batch[row] for batch in batches],
            retain_graph=retain_graph or row + 1 < count, **named,
        )
        for row in range(count)
    ]  # fmt: skip
    return tuple([
        None if column[0] is None else RUNTIME.functions.stack(list(column))
        for column in zip(*rows, strict=True)
    ])  # fmt: skip


def _zeros(shape: tuple[int, ...], like: Any) -> Any:
    return RUNTIME.functions.zeros(shape, dtype=like.dtype, device=like.device)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the .grad of leaves, or of `inputs` alone."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.",
                      FutureWarning, stacklevel=2)  # fmt: skip
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if grad_tensors is None and inputs is None and isinstance(tensors, RUNTIME.tensor):
        # What nearly every call is: loss.backward().
        own = history(tensors)
        if own is not None:
            run_backward(
                ((own, _ones(tensors, tensors._layout)),),
                keep_graph=create_graph if retain_graph is None else retain_graph,
                create_graph=create_graph,
            )
            return
    outputs = _as_tuple(tensors)
    places = None
    if inputs is not None:
        given = _as_tuple(inputs)
        if not given:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for each in given:
            if not isinstance(each, GradientEdge):
                retain_grad(each)
        places = _histories(given)
    run_backward(
        _roots(outputs, grad_tensors),
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=places,
    )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of `outputs` with respect to `inputs`; nothing is accumulated."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if is_grads_batched:
        keep = create_graph if retain_graph is None else retain_graph
        named = {
            "create_graph": create_graph, "only_inputs": only_inputs,
            "allow_unused": allow_unused, "materialize_grads": materialize_grads,
        }  # fmt: skip
        return _grads_of_batch(outputs, inputs, grad_outputs, keep, named)
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True)",
                      FutureWarning, stacklevel=2)  # fmt: skip
    given = _as_tuple(inputs)
    if not given:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    roots = _roots(_as_tuple(outputs), grad_outputs)
    places = _histories(given)
    if any(own is None for own in places):
        raise RuntimeError(
            helped(
                "One of the differentiated Tensors does not require grad",
                fix="set requires_grad=True on it before the forward computation",
            )
        )
    found = run_backward(
        roots,
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=places,
        adds=False,
    )
    if any(value is None for value in found):
        led_to = reached(roots)
        for index, (value, own) in enumerate(zip(found, places, strict=True)):
            layout = getattr(given[index], "_layout", None)
            if value is None and layout is not None and place(own) in led_to:
                found[index] = _zeros(layout.shape, layout)
    return _filled(found, given, materialize_grads, allow_unused)


def _filled(
    found: list[Any], given: tuple[Any, ...], materialize_grads: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """Gradients; where there is none zeros, None or an error."""
    for index, value in enumerate(found):
        if value is not None:
            continue
        if materialize_grads:
            layout = given[index]._layout
            found[index] = _zeros(layout.shape, layout)
        elif not allow_unused:
            raise RuntimeError(
                helped(
                    f"The differentiated Tensor at index {index} appears to not have been used in "
                    "the graph. Set allow_unused=True if this is the desired behavior.",
                    fix="allow_unused=True gives None for it, materialize_grads=True zeros",
                )
            )
    return tuple(found)
