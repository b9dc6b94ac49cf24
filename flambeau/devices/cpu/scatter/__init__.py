"""Writing by index: makers that `b.kernel` names as "scatter.<maker>"."""

from flambeau.devices.cpu.scatter.plan import (
    add,
    add_places,
    add_rows,
    fold,
    put,
    put_places,
    put_rows,
)

__all__ = ["add", "add_places", "add_rows", "fold", "put", "put_places", "put_rows"]
