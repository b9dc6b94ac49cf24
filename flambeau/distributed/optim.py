"""torch.distributed.optim: optimizers whose state is divided among ranks.

Keeps     with one rank, the optimizer that was asked for, with all parameters and all state.
Touches   optim, world.py.
Not here  the update rules (optim/)."""

from __future__ import annotations

from typing import Any

from flambeau.base.missing import module_getattr
from flambeau.distributed.world import get_world_size
from flambeau.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer that keeps the state of this rank's share of the parameters: of one rank, all.

    optimizer_class   the class of the optimizer; `defaults` are its settings
    process_group     the default one where None is given, which must have been made
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        get_world_size(process_group)
        super().__init__(params, defaults)
        self.process_group = process_group
        self.optim = optimizer_class(self.param_groups, **defaults)
        self.state, self.param_groups = self.optim.state, self.optim.param_groups

    def step(self, closure: Any = None, **named: Any) -> Any:
        """One step of the optimizer; what closure() returns."""
        return self.optim.step(closure, **named)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with settings of its own."""
        if "optim" in self.__dict__:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to rank `to`, which has them."""

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state dict."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of an optimizer's state dict."""
        self.optim.load_state_dict(state_dict)
        self.state, self.param_groups = self.optim.state, self.optim.param_groups


__getattr__ = module_getattr(__name__)
