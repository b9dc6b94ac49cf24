"""Names that begin with an underscore or lie deep, and that programs import all the same."""

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    "name",
    ["_C._LinAlgError", "_C._log_api_usage_once", "_C._jit_set_profiling_mode", "_dynamo.config",
     "_utils._flatten_dense_tensors", "_vmap_internals._vmap", "_assert", "torch.nn.Linear",
     "distributions.utils._sum_rightmost", "distributions.utils._standard_normal",
     "distributions.multivariate_normal._batch_mv", "jit.Final", "jit.TracerWarning",
     "nn.modules.module._IncompatibleKeys", "serialization.MAP_LOCATION",
     "utils.model_zoo.load_url", "cuda._initialized", "cuda.OutOfMemoryError"],
)  # fmt: skip
def test_the_name_is_there(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)


def test_tensors_are_told_apart_by_a_number():
    x, y = torch.ones(1), torch.ones(1)
    assert x._cdata == x._cdata != y._cdata


def test_a_failed_decomposition_is_caught_by_its_inner_name():
    with pytest.raises(torch._C._LinAlgError):
        torch.linalg.cholesky(-torch.eye(2))


def test_settings_of_the_compiler_can_be_made():
    torch._dynamo.config.suppress_errors = True
    torch._dynamo.reset()
    assert not torch._dynamo.is_compiling()
    assert torch._dynamo.disable(len) is torch._dynamo.disable()(len) is len
    with pytest.raises(AssertionError, match=r"^told$"):
        torch._assert(torch.tensor(False), "told")


def test_draws_by_the_inner_name_are_those_of_randn():
    torch.manual_seed(0)
    drawn = torch.distributions.utils._standard_normal((3,), torch.float64, "cpu")
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.normal(torch.zeros(3).double(), torch.ones(3).double()))


def test_a_batched_function_by_the_inner_name():
    assert torch._vmap_internals._vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "package, name", [("nn", "Linear"), ("optim", "SGD"), ("distributions", "Normal"),
                      ("nn.functional", "relu"), ("nn.functional", "mse_loss")],
)  # fmt: skip
def test_packages_list_names_that_nobody_used_yet(package, name):
    found = torch
    for part in package.split("."):
        found = getattr(found, part)
    assert found.__dict__[name] is vars(found)[name] is getattr(found, name)


def test_a_line_search_by_the_inner_name():
    from flambeau.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def objective(x, step, direction):
        place = x + step * direction
        return float((place**4).sum()), 4 * place**3

    x, direction = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
    loss, gradient = objective(x, 0.0, direction)
    found = _strong_wolfe(objective, x, 1.0, direction, loss, gradient, gradient.dot(direction))
    assert (found[0], found[3]) == (0.0, 1)
    slope = gradient.dot(direction)
    tight = _strong_wolfe(objective, x, 0.1, direction, loss, gradient, slope, c2=0.01)
    assert abs(tight[1].dot(direction)) <= 0.01 * abs(slope)
    at = _cubic_interpolate(0.0, 1.0, torch.tensor(-1.0), 1.0, 1.0, torch.tensor(1.0))
    assert float(at) == 0.5


def test_parts_of_a_jacobian_by_their_inner_names():
    from flambeau.autograd import functional

    x = torch.ones(2)
    was_tuple, values = functional._as_tuple(x, "inputs", "jacobian")
    assert (was_tuple, values) == (False, (x,))
    rows, more = functional._construct_standard_basis_for((x, torch.ones(1)), (2, 1))
    assert rows.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert more.tolist() == [[0.0], [0.0], [1.0]]
    assert functional._tuple_postprocess(((x,), (x,)), (True, False)) == (x, x)
    assert functional._grad_postprocess(((x,),), create_graph=False)[0][0].grad_fn is None


def test_leaves_of_one_class_are_mapped():
    from flambeau.utils import _pytree, backcompat

    assert _pytree.tree_map_only(int, lambda n: n + 1, [1, {"a": "b"}]) == [2, {"a": "b"}]
    backcompat.broadcast_warning.enabled = True
    assert not backcompat.keepdim_warning.enabled
