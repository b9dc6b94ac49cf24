"""assert_close: |actual - expected| <= atol + rtol |expected|, and a report of where it is not.

Keeps     tolerances follow from the dtypes, as in torch; sequences and mappings are compared member
          by member, and the report says which.
Touches   tensor.
Not here  allclose, which answers yes or no (tensor.public.queries)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t

_TOLERANCES: Final = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5), dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip


_OLD_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8),
}  # fmt: skip


class _Settings:
    """What assert_close was told, for every pair of members."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def tolerances(self, *elements: Any) -> tuple[float, float]:
        """(rtol, atol): what was given, or the larger of those of the dtypes."""
        rtol, atol = self.given["rtol"], self.given["atol"]
        if (rtol is None) != (atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or unspecified, but got no "
                f"'{'rtol' if rtol is None else 'atol'}'."
            )
        if rtol is not None:
            return float(rtol), float(atol)
        pairs = [_TOLERANCES.get(each, (0.0, 0.0)) for each in elements]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
    atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
    check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raise AssertionError unless both are close, with shapes and dtypes alike.

    >>> assert_close(t.ones(2), t.ones(2) + 1e-7)
    """
    settings = _Settings(
        allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan,
        check_dtype=check_dtype, check_stride=check_stride,
    )  # fmt: skip
    found = _difference(actual, expected, settings, ())
    if found is not None:
        if callable(msg):
            found = msg(found)
        raise AssertionError(msg if isinstance(msg, str) else found)


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """assert_close with the tolerances and the blindness to dtypes of before torch 1.12."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = creation.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = creation.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in (actual, expected)]
        rtol, atol = (max(each) for each in zip(*pairs, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        check_device=True, check_stride=False, msg=msg or None,
    )  # fmt: skip


def _at(place: tuple[Any, ...]) -> str:
    where = "".join(f"[{each!r}]" for each in place)
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _difference(actual: Any, expected: Any, settings: _Settings, place: tuple[Any, ...]) -> Any:
    """What is wrong, as a text; None where nothing is."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing = sorted(expected.keys() - actual.keys(), key=str)
            more = sorted(actual.keys() - expected.keys(), key=str)
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {more}{_at(place)}"
            )
        return _first(
            _difference(actual[key], expected[key], settings, (*place, key)) for key in actual
        )
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return (
                "The length of the sequences mismatch: "
                f"{len(actual)} != {len(expected)}{_at(place)}"
            )
        pairs = enumerate(zip(actual, expected, strict=True))
        return _first(_difference(a, e, settings, (*place, n)) for n, (a, e) in pairs)
    if actual is None and expected is None:
        return None
    if not settings.given["allow_subclasses"] and type(actual) is not type(expected):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}."
        )
    try:
        one, two = (_as_tensor(each) for each in (actual, expected))
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}."
        ) from None
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    found = _of_tensors(one, two, settings, numbers)
    return None if found is None else found + _at(place)


def _first(found: Any) -> Any:
    return next((each for each in found if each is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, float):
        return creation.tensor(value, dtype=dtypes.float64)
    return creation.tensor(value)


def _of_tensors(actual: Any, expected: Any, settings: _Settings, numbers: bool) -> str | None:
    if tuple(actual.shape) != tuple(expected.shape):
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    if actual.dtype is not expected.dtype and not numbers and settings.given["check_dtype"]:
        return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
    if settings.given["check_stride"] and actual.stride() != expected.stride():
        return (
            "The values for attribute 'stride()' do not match: "
            f"{actual.stride()} != {expected.stride()}."
        )
    rtol, atol = settings.tolerances(actual.dtype, expected.dtype)
    common = promotion.promote_types(actual.dtype, expected.dtype)
    actual, expected = actual.to(common), expected.to(common)
    close = t.isclose(actual, expected, rtol, atol, settings.given["equal_nan"])
    if bool(close.all()):
        return None
    if common is dtypes.bool_:
        actual, expected = actual.to(dtypes.int64), expected.to(dtypes.int64)
    return _report(actual, expected, t.logical_not(close), rtol, atol, numbers)


def _report(actual: Any, expected: Any, wrong: Any, rtol: float, atol: float, numbers: bool) -> str:
    kind = "Scalars" if numbers else "Tensor-likes"
    what = "equal" if not rtol and not atol else "close"
    difference = t.abs(actual - expected)
    relative = difference / t.abs(expected)
    if not actual.ndim:
        share = "" if what == "equal" else f" (up to {atol} allowed)"
        ratio = "" if what == "equal" else f" (up to {rtol} allowed)"
        head = f"{kind} are not {what}!"
        if numbers:
            head += f"\n\nExpected {expected.item()} but got {actual.item()}."
        else:
            head += "\n"
        return (
            f"{head}\nAbsolute difference: {difference.item()}{share}\n"
            f"Relative difference: {relative.item()}{ratio}"
        )
    count, total = int(wrong.sum()), wrong.numel()
    lines = [
        f"{kind} are not {what}!", "",
        f"Mismatched elements: {count} / {total} ({100.0 * count / total:.1f}%)",
    ]  # fmt: skip
    for name, values, allowed in (
        ("absolute", difference, atol), ("relative", relative, rtol),
    ):  # fmt: skip
        shown = t.masked_fill(values.to(dtypes.float64), t.logical_not(wrong), 0)
        at = int(t.argmax(shown.reshape(-1)))
        index = []
        rest = at
        for size in reversed(actual.shape):
            index.append(rest % size)
            rest //= size
        place = tuple(reversed(index))
        limit = f" (up to {allowed} allowed)" if what == "close" else ""
        lines.append(
            f"Greatest {name} difference: {values.reshape(-1)[at].item()} at index {place}{limit}"
        )
    return "\n".join(lines)
