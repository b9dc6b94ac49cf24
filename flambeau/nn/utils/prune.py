"""Pruning: parts of a parameter set to zero by a mask, before every forward.

Keeps     the parameter becomes <name>_orig, the mask is the buffer <name>_mask; pruned again, what
          is left is pruned.
Touches   nn.parameter, module hooks.
Not here  which parts matter to a model.
Source    torch.nn.utils.prune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.random.tensors import rand_like, randperm
from flambeau.tensor import functions as t

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


def _count(amount: Any, total: int) -> int:
    """How many of `total` parts an amount is: a number of them, or a share."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, int) and amount < 0) or (
        isinstance(amount, float) and not 0.0 <= amount <= 1.0
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )
    if isinstance(amount, int) and amount > total:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={total}"
        )
    return amount if isinstance(amount, int) else round(amount * total)


class BasePruningMethod:
    """A way to choose what is pruned: compute_mask says which places stay."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """1 where a place stays, 0 where it goes; what default_mask has taken is gone already."""
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Any) -> Any:
        """The original under the mask."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor with the chosen places zero."""
        scores = t if importance_scores is None else importance_scores
        mask = _ones(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, further where it has been pruned before."""
        before = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        own = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != own.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        scores = own if importance_scores is None else importance_scores
        if before:
            key, older = before[0]
            del module._forward_pre_hooks[key]
            container = older if isinstance(older, PruningContainer) else PruningContainer(older)
            container.add_pruning_method(method)
            default = getattr(module, name + "_mask").to(own.dtype)
            method, chosen = container, container.compute_mask(scores.detach(), default)
        else:
            original = module._parameters[name]
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
            chosen = method.compute_mask(scores.detach(), default_mask=_ones(original))
        module.register_buffer(name + "_mask", chosen)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def remove(self, module: Any) -> None:
        """Make what is left the parameter again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _ones(like: Any) -> Any:
    return t.ones_like(like.detach())


class PruningContainer(BasePruningMethod):
    """Several ways, one after the other; each sees what the ones before have left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        self._tensor_name = args[0]._tensor_name if args else ""
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """One way more."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The last way's choice among what stays."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone()
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = tuple(each for each in range(t.dim()) if each != dim)
            kept = mask.sum(others).ne(0)
            places = kept.nonzero().reshape(-1)
            part = method.compute_mask(t.index_select(dim, places), mask.index_select(dim, places))
            return mask.index_copy(dim, places, part.to(mask.dtype))
        chosen = mask.eq(1)
        part = method.compute_mask(t[chosen], mask[chosen])
        mask[chosen] = part.to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Nothing is pruned; parameter and mask get their names."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Single places by chance."""

    def __init__(self, amount: Any) -> None:
        _count(amount, 2**62)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = default_mask.clone()
        count = _count(self.amount, t.numel())
        if count:
            places = rand_like(t).reshape(-1).topk(count).indices
            mask.view(-1)[places] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """The single places of least size."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = default_mask.clone()
        count = _count(self.amount, t.numel())
        if count:
            places = t.abs().reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[places] = 0
        return mask


class RandomStructured(BasePruningMethod):
    """Whole slices along a dim by chance."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _count(amount, 2**62)
        self.amount = amount
        self.dim = dim

    def places(self, t: Any, count: int) -> Any:
        """Which slices go."""
        return randperm(t.shape[self.dim])[:count]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of dim {t.dim()} with {self.dim}"
            )
        count = _count(self.amount, t.shape[self.dim])
        if not count:
            return default_mask
        return default_mask.index_fill(self.dim, self.places(t, count), 0)


class LnStructured(RandomStructured):
    """The whole slices of least n-norm along a dim."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def places(self, t: Any, count: int) -> Any:
        others = tuple(each for each in range(t.dim()) if each != self.dim % t.dim())
        return t.norm(p=self.n, dim=others).topk(count, largest=False).indices


class CustomFromMask(BasePruningMethod):
    """A mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = self.mask
        if mask.shape != default_mask.shape:  # of what is left only
            return mask.reshape(-1)[: default_mask.numel()].to(default_mask.dtype)
        return default_mask * mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Give a parameter the names of a pruned one; nothing goes."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune single places by chance; amount: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the single places of least size."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune whole slices along a dim by chance."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the whole slices of least n-norm along a dim."""
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune by a mask."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[Any], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters, (module, name) each, as one vector."""
    pairs = list(parameters)
    scores = importance_scores or {}
    values = [scores.get(pair, getattr(*pair)).detach().reshape(-1) for pair in pairs]
    masks = [getattr(m, n + "_mask", None) for m, n in pairs]
    defaults = [
        _ones(value) if mask is None else mask.reshape(-1)
        for mask, value in zip(masks, values, strict=True)
    ]
    flat, default = t.cat(values), t.cat(defaults)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE is supported for the `pruning_method`. Found '
            f"method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    chosen = container.compute_mask(flat, default)
    start = 0
    for module, name in pairs:
        own = getattr(module, name)
        mask = chosen[start : start + own.numel()].reshape(own.shape)
        start += own.numel()
        _replace_mask(module, name, mask)


def _replace_mask(module: Any, name: str, mask: Any) -> None:
    """A whole mask, that of what has been pruned before included."""
    if name + "_mask" in module._buffers:
        module._buffers[name + "_mask"] = mask
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                hook(module, None)
        return
    CustomFromMask.apply(module, name, mask=mask)


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one, zeros included."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )
