"""What modules save and take back."""

import flambeau as torch


def test_hooks_before_loading_see_the_module_s_own_keys():
    outer = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    seen = []
    outer[1].register_load_state_dict_pre_hook(lambda module, given, *rest: seen.append(set(given)))
    outer.load_state_dict(outer.state_dict())
    assert seen == [{"1.weight", "1.bias"}]


def test_a_lazy_layer_takes_the_state_of_one_without_shape():
    lazy, other = torch.nn.LazyLinear(4), torch.nn.LazyLinear(4)
    lazy.load_state_dict(other.state_dict())
    assert lazy.has_uninitialized_params()
    lazy.load_state_dict(torch.nn.Linear(3, 4).state_dict())
    assert lazy.weight.shape == (4, 3)
