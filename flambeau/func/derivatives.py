"""grad, vjp, jvp: derivatives of functions of nested tensors, to any order.

Keeps     inside, inputs are differentiated at places of their own; a result belongs to an outer
          graph exactly where something outside asked for gradients.
Touches   gradients (entry, modes, members), base.trees.
Not here  whole Jacobians (jacobians.py); forward mode: jvp is two reverse passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.autograd.forward_ad import check_tangent
from flambeau.autograd.grad_mode import enable_grad
from flambeau.base.trees import tree_flatten, tree_map, tree_unflatten
from flambeau.gradients.entry import grad as gradients_of
from flambeau.gradients.members import requires_grad, set_requires_grad
from flambeau.gradients.runtime import RUNTIME
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t

Leaves = list[Any]


class Places:
    """Where a function is differentiated: the leaves of chosen arguments, each a new place."""

    def __init__(self, values: Leaves, name: str) -> None:
        for each in values:
            if not isinstance(each, Tensor):
                raise ValueError(f"{name}(f, *args): Expected args to be Tensors, got {type(each)}")
        self.outer = [requires_grad(each) for each in values]
        self.inner = [_place(each) for each in values]

    def derivatives(self, outputs: Leaves, cotangents: Leaves) -> Leaves:
        """Cotangents of the places, zeros where an output does not depend on one."""
        kept = [
            (output, cotangent)
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if requires_grad(output)
        ]
        found: Any = (None,) * len(self.inner)
        if kept:
            found = gradients_of(
                [output for output, _ in kept], self.inner, [each for _, each in kept],
                retain_graph=True, create_graph=True, allow_unused=True,
            )  # fmt: skip
        return [
            t.zeros_like(place) if value is None else value
            for place, value in zip(self.inner, found, strict=True)
        ]

    def outside(self, value: Any) -> Any:
        """A result as whoever called sees it: detached where only the places asked for a graph."""
        if not isinstance(value, Tensor) or not requires_grad(value):
            return value
        if any(self.outer) or _reaches_others(value, self.inner):
            return value
        return value.detach()


def _place(value: Any) -> Any:
    if requires_grad(value):
        return t.view(value, value._layout.shape)
    leaf = RUNTIME.alias(value)
    set_requires_grad(leaf, True)
    return leaf


def _reaches_others(value: Any, places: Leaves) -> bool:
    """Whether a graph has leaves that are not the given places."""
    own = {id(place) for place in places}
    if value.grad_fn is None:
        return id(value) not in own
    seen = set()
    waiting = [value.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in own:
            return True
        waiting += [each for each, _ in node.next_functions if each is not None]
    return False


def chosen(arguments: tuple[Any, ...], argnums: Any, name: str) -> tuple[int, ...]:
    """Numbers of the arguments to differentiate, counted from 0."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for number in numbers:
        if not -len(arguments) <= number < len(arguments):
            raise RuntimeError(f"Got argnum={number}, but only {len(arguments)} positional inputs")
    if not numbers:
        raise ValueError(f"{name}: argnums must be non-empty")
    return tuple(number % len(arguments) for number in numbers)


def placed(arguments: tuple[Any, ...], argnums: Any, name: str) -> tuple[Any, ...]:
    """(places, their nesting, the arguments with places in them)."""
    numbers = chosen(arguments, argnums, name)
    picked = arguments[numbers[0]] if isinstance(argnums, int) else tuple(
        arguments[number] for number in numbers
    )  # fmt: skip
    leaves, spec = tree_flatten(picked)
    places = Places(leaves, name)
    inner = tree_unflatten(places.inner, spec)
    replaced = list(arguments)
    for position, number in enumerate(numbers):
        replaced[number] = inner if isinstance(argnums, int) else inner[position]
    return places, spec, replaced


def split_aux(value: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """(output, aux)."""
    if not has_aux:
        return value, None
    if not isinstance(value, tuple) or len(value) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return value


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives (gradient, value) of a scalar function, or (gradient, (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            places, spec, replaced = placed(args, argnums, "grad")
            output, aux = split_aux(func(*replaced, **kwargs), has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                    f"{type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    f"tensor with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev "
                    "APIs instead?"
                )
            found = places.derivatives([output], [t.ones_like(output)])
        made = tree_unflatten([places.outside(each) for each in found], spec)
        value = places.outside(output)
        return (made, (value, tree_map(places.outside, aux))) if has_aux else (made, value)

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of a scalar function, or (gradient, aux).

    >>> import flambeau as torch
    >>> grad(grad(torch.sin))(torch.tensor(0.0))
    tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        made, value = both(*args, **kwargs)
        return (made, value[1]) if has_aux else made

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), the function from cotangents of the output to those of the primals)."""
    with enable_grad():
        leaves, spec = tree_flatten(primals)
        places = Places(leaves, "vjp")
        inner = tree_unflatten(places.inner, spec)
        output, aux = split_aux(func(*inner), has_aux, "vjp(f, *primals)")
    outputs, out_spec = tree_flatten(output)

    def vjp_fn(*cotangents: Any, **named: Any) -> Any:
        given, given_spec = tree_flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if given_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given_spec}, primal output: {out_spec}"
            )
        with enable_grad():
            found = places.derivatives(outputs, given)
        outer = _Outside(places, given)
        return tree_unflatten([outer.outside(each) for each in found], spec)

    value = tree_map(places.outside, output)
    return (value, vjp_fn, tree_map(places.outside, aux)) if has_aux else (value, vjp_fn)


class _Outside(Places):
    """Places together with cotangents, which may belong to an outer graph themselves."""

    def __init__(self, places: Places, cotangents: Leaves) -> None:
        self.inner = places.inner
        self.outer = [*places.outer, *[requires_grad(each) for each in cotangents]]


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """(func(*primals), the derivative along the tangents)."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid "
            "to call f(*primals)."
        )
    directions, spec = tree_flatten(tangents)
    leaves, primal_spec = tree_flatten(primals)
    if spec != primal_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            f"structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {primal_spec} and tangents with structure {spec}"
        )
    for primal, tangent in zip(leaves, directions, strict=True):
        check_tangent(primal, tangent)
    with enable_grad():
        places = Places(leaves, "jvp")
        output, aux = split_aux(
            func(*tree_unflatten(places.inner, primal_spec)), has_aux, "jvp(f, primals, tangents)"
        )
        outputs, out_spec = tree_flatten(output)
        found = along(places, outputs, directions)
    outer = _Outside(places, directions)
    value = tree_map(outer.outside, output)
    made = tree_unflatten([outer.outside(each) for each in found], out_spec)
    return (value, made, tree_map(outer.outside, aux)) if has_aux else (value, made)


def along(places: Places, outputs: Leaves, directions: Leaves) -> Leaves:
    """J v, by differentiating u^T J, which is linear in u, with respect to u."""
    cotangents = [_place(t.zeros_like(each).detach()) for each in outputs]
    rows = places.derivatives(outputs, cotangents)
    kept = [(row, v) for row, v in zip(rows, directions, strict=True) if requires_grad(row)]
    found: Any = (None,) * len(outputs)
    if kept:
        found = gradients_of(
            [row for row, _ in kept], cotangents, [v for _, v in kept],
            retain_graph=True, create_graph=True, allow_unused=True,
        )  # fmt: skip
    return [
        t.zeros_like(output).detach() if value is None else value
        for output, value in zip(outputs, found, strict=True)
    ]


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """(func(*primals), the function from tangents to the derivative along them)."""
    with enable_grad():
        leaves, spec = tree_flatten(primals)
        places = Places(leaves, "linearize")
        output = func(*tree_unflatten(places.inner, spec))
    outputs, out_spec = tree_flatten(output)

    def jvp_fn(*tangents: Any) -> Any:
        directions, given = tree_flatten(tangents)
        if given != spec:
            raise RuntimeError(
                f"Expected the tangents {tangents} to have the same argspec as the primals "
                f"{primals}"
            )
        with enable_grad():
            found = along(places, outputs, directions)
        outer = _Outside(places, directions)
        return tree_unflatten([outer.outside(each) for each in found], out_spec)

    return tree_map(places.outside, output), jvp_fn
