"""torch.func: gradients, Jacobians and batches of functions, as functions of functions.

Keeps     names are found when used.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_WHERE = {
    **dict.fromkeys(("grad", "grad_and_value", "jvp", "linearize", "vjp"), "derivatives"),
    **dict.fromkeys(("hessian", "jacfwd", "jacrev"), "jacobians"),
    **dict.fromkeys(("replace_all_batch_norm_modules_", "stack_module_state", "vmap"), "batches"),
    **dict.fromkeys(("functional_call", "functionalize"), "calls"),
}

__getattr__, __dir__ = lazy_names(__name__, _WHERE)
