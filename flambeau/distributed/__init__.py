"""torch.distributed: a world of one process.

Keeps     what a program may ask without a group is answered as torch answers it; a group of one
          process is real, and its collectives do what they do with one rank.
Touches   the files beside it, lazily.
Not here  several processes: joining a larger world raises, and says so."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_FILES: dict[str, tuple[str, ...]] = {
    "world": (
        "Backend", "GroupMember", "ProcessGroup", "Work", "destroy_process_group", "get_backend",
        "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
        "init_process_group", "is_available", "is_gloo_available", "is_initialized",
        "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
        "is_xccl_available", "new_group", "get_global_rank", "get_group_rank",
    ),
    "collectives": (
        "ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
        "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list",
        "gather", "gather_object", "irecv", "isend", "monitored_barrier", "recv", "reduce",
        "reduce_op", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list",
        "send",
    ),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}
_MODULES = (
    "_composable", "_functional_collectives", "algorithms", "checkpoint", "constants",
    "device_mesh",    "distributed_c10d", "fsdp", "nn", "optim", "rpc", "tensor",
)  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _WHERE, _MODULES)
