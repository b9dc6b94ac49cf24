"""torch.autograd.grad_mode: the contexts that switch recording of gradients on and off.

Keeps     torch's names.
Touches   gradients.modes.
Not here  what the modes do."""

from __future__ import annotations

from flambeau.gradients.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"
]  # fmt: skip


class set_multithreading_enabled:  # noqa: N801 - torch's name
    """Accepted for torch's sake: a backward pass records on the calling thread alone."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
