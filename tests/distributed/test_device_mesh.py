"""Meshes of one process."""

import pytest

from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh


@pytest.fixture(autouse=True)
def world():
    yield
    dist.destroy_process_group()


def test_a_mesh_is_of_this_process():
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.get_coordinate()) == (2, (1, 1), 1, [0, 0])
    assert mesh["data"].shape == (1,)
    assert mesh.get_group("data") is dist.group.WORLD
    with pytest.raises(KeyError, match="Valid mesh_dim_names are"):
        mesh["rows"]
    with pytest.raises(RuntimeError, match="not be bigger than default world size 1"):
        init_device_mesh("cpu", (2,))
    with pytest.raises(RuntimeError, match="should have same length"):
        init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b"))
