"""Bessel's and Airy's functions at values worked out with mpmath, and at their ends."""

import math

import pytest

import flambeau as torch

INF, NAN = math.inf, math.nan
VALUES = {
    "bessel_j0": {
        0.01: 0.9999750001562495,
        1.5: 0.5118276717359181,
        2.5: -0.048383776468198,
        7.75: 0.22523406912010668,
        8.5: 0.041939251842934504,
        40.0: 0.00736689058423729,
        -1.25: 0.6459060852712852,
        -2.875: -0.21481585463182012,
        -3.5: -0.3801277399872634,
        -20.0: 0.16702466434058316,
    },
    "bessel_j1": {
        0.01: 0.004999937500260416,
        1.5: 0.5579365079100996,
        2.5: 0.49709410246427405,
        7.75: 0.1916025921891178,
        8.5: 0.2731219636740537,
        40.0: 0.126038318037585,
        -1.25: -0.5106232603198805,
        -2.875: -0.38420565794944483,
        -3.5: -0.1373775273623272,
        -20.0: -0.06683312417585005,
    },
    "bessel_y0": {
        0.01: -3.005455637083646,
        1.5: 0.38244892379775886,
        2.5: 0.4980703596152319,
        7.75: 0.17676987751364717,
        8.5: 0.27020510536578746,
        40.0: 0.12593641705826092,
    },
    "bessel_y1": {
        0.01: -63.67859628206065,
        1.5: -0.4123086269739113,
        2.5: 0.1459181379667858,
        7.75: -0.21433222865940804,
        8.5: -0.02616867939853747,
        40.0: -0.005793505821549633,
    },
    "modified_bessel_i0": {
        0.01: 1.0000250001562505,
        1.5: 1.646723189772891,
        2.5: 3.289839144050123,
        7.75: 338.5137537472759,
        8.5: 683.1619269901156,
        40.0: 1.48947747934199e16,
    },
    "modified_bessel_i1": {
        0.01: 0.005000062500260418,
        1.5: 0.9816664285779075,
        2.5: 2.5167162452886984,
        7.75: 315.85248092400343,
        8.5: 641.6199025400667,
        40.0: 1.4707396163259352e16,
    },
    "modified_bessel_k0": {
        0.01: 4.721244730161095,
        1.5: 0.21380556264752573,
        2.5: 0.06234755320036619,
        7.75: 0.00019099545486702074,
        8.5: 8.625756634932507e-05,
        40.0: 8.392861100099567e-19,
    },
    "modified_bessel_k1": {
        0.01: 99.97389411829624,
        1.5: 0.2773878004568438,
        2.5: 0.07389081634774707,
        7.75: 0.00020296330367377868,
        8.5: 9.119724775006898e-05,
        40.0: 8.497131954861039e-19,
    },
    "scaled_modified_bessel_k0": {
        0.01: 4.768694028544462,
        1.5: 0.9582100532948965,
        2.5: 0.7595486903280996,
        7.75: 0.44340977933536646,
        8.5: 0.4239359993336981,
        40.0: 0.19755558495729816,
    },
    "scaled_modified_bessel_k1": {
        0.01: 100.97864845824004,
        1.5: 1.243165873552553,
        2.5: 0.900174423907878,
        7.75: 0.4711940069873715,
        8.5: 0.4482133915630794,
        40.0: 0.20000996725443349,
    },
    "airy_ai": {
        0.01: 0.3524399188055506,
        1.5: 0.07174949700810541,
        2.5: 0.01572592338047049,
        7.75: 9.537038961641585e-08,
        8.5: 1.0997009755195506e-08,
        40.0: 6.365742658552915e-75,
        -1.25: 0.5200454774352992,
        -2.875: -0.3310697775547283,
        -3.5: -0.37553382314043193,
        -20.0: -0.1764061270779847,
    },
    "spherical_bessel_j0": {
        0.01: 0.9999833334166665,
        1.5: 0.6649966577360363,
        2.5: 0.2393888576415826,
        7.75: 0.12833532633692596,
        8.5: 0.09393966030864592,
        40.0: 0.018627829011983718,
        -1.25: 0.759187695484469,
        -2.875: 0.09163338899597247,
        -3.5: -0.10022377933989139,
        -20.0: 0.045647262536381385,
    },
}
# name -> the values at 0, infinity and -1 where they are not finite numbers worked out above.
ENDS = {
    "bessel_j0": (1.0, NAN, None), "bessel_j1": (0.0, NAN, None),
    "bessel_y0": (-INF, NAN, NAN), "bessel_y1": (-INF, NAN, NAN),
    "modified_bessel_i0": (1.0, NAN, None), "modified_bessel_i1": (0.0, NAN, None),
    "modified_bessel_k0": (INF, 0.0, NAN), "modified_bessel_k1": (INF, 0.0, NAN),
    "scaled_modified_bessel_k0": (INF, 0.0, NAN), "scaled_modified_bessel_k1": (INF, 0.0, NAN),
    "airy_ai": (0.3550280538878172, NAN, None), "spherical_bessel_j0": (1.0, 0.0, None),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    function = getattr(torch.special, name)
    x = torch.tensor(list(VALUES[name]), dtype=torch.float64)
    wanted = list(VALUES[name].values())
    assert function(x).tolist() == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    assert function(x.float()).tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ENDS)
def test_ends(name):
    found = getattr(torch.special, name)(torch.tensor([0.0, INF, -1.0, NAN])).tolist()
    for value, wanted in zip(found, (*ENDS[name], NAN), strict=True):
        if wanted is not None:
            assert value == pytest.approx(wanted, nan_ok=True)


def test_there_are_no_gradients():
    x = torch.ones(2, requires_grad=True)
    assert not torch.special.bessel_j0(x).requires_grad
    with pytest.raises(NotImplementedError, match="\"airy_ai_cpu\" not implemented for 'Half'"):
        torch.special.airy_ai(x.half())
