"""Convolution and the gradient of its weights: products of windows with weights.

Keeps     an output is one product over the channels of its group and the places of the kernel, in
          that order, whatever the batch; 16-bit floats accumulate in float32.
Touches   ops.define, base, sizes.
Not here  the kernels (devices/cpu/convolution), unbatched inputs and "same" (nn/functions)."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, contiguous_strides
from flambeau.base.promotion import kernel_dtype
from flambeau.ops.convolution import few_places
from flambeau.ops.convolution.sizes import (
    check_fits,
    n_parts,
    reached_sizes,
    repeated,
    three,
    window_counts,
)
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Sizes,
    Tensor,
    not_implemented,
    operator,
    type_name,
)

_INPUT_TYPES = {"float16": "c10::Half", "bfloat16": "c10::BFloat16"}

_SETTINGS = ("stride", "padding", "dilation")


def _input_type(given: Layout) -> str:
    return _INPUT_TYPES.get(given.dtype.name) or {
        "float32": "float", "float64": "double", "int64": "long int", "int32": "int",
        "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
    }.get(given.dtype.name, given.dtype.name)  # fmt: skip


def _spatial(b: Any, value: Any, element: dtype, lead: int = 2) -> Any:
    """The value in the dtype computed in, with three spatial dims."""
    shape = tuple(value.shape)
    return b.reshape(b.convert(value, element), (*shape[:lead], *three(shape[lead:], 1)))


def _packed(b: Any, value: Any) -> Any:
    """The value contiguous in memory."""
    value = b.memory(value)
    if tuple(value.strides) == contiguous_strides(tuple(value.shape)):
        return value
    return b.map(lambda k, x: x, value)


@operator("convolution", methods=())
class Convolution(Operator):
    """Weights (O, C / groups, *kernel) slid over (N, C, *sizes); transposed: the gradient of that
    with respect to its input, for weights (C, O / groups, *kernel)."""

    holomorphic = True
    out = False
    saved_for = {"input": ("weight",), "weight": ("input",), "bias": ()}

    def infer(
        self, input: Tensor, weight: Tensor, bias: OptionalTensor, stride: Sizes, padding: Sizes,
        dilation: Sizes, transposed: bool, output_padding: Sizes, groups: int,
    ) -> Inferred:  # fmt: skip
        count = weight.ndim - 2
        if count < 1:
            raise RuntimeError("weight should have at least three dimensions")
        if groups <= 0:
            raise RuntimeError("non-positive groups is not supported")
        stride = repeated("stride", stride, count)
        padding = repeated("padding", padding, count)
        dilation = repeated("dilation", dilation, count)
        output_padding = repeated("output_padding", output_padding, count)
        if any(each < 0 for each in padding):
            raise RuntimeError("negative padding is not supported")
        if any(each < 0 for each in output_padding):
            raise RuntimeError("negative output_padding is not supported")
        if any(each <= 0 for each in stride):
            raise RuntimeError("non-positive stride is not supported")
        if any(each <= 0 for each in dilation):
            raise RuntimeError("non-positive dilation is not supported")
        if input.ndim != weight.ndim:
            raise RuntimeError(
                f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
                f"{list(weight.shape)}, but got {input.ndim}-dimensional input of size "
                f"{list(input.shape)} instead"
            )
        _check_channels(input, weight, bias, transposed, groups)
        _check_dtypes(input, weight, bias)
        kernel, sizes = weight.shape[2:], input.shape[2:]
        if transposed:
            channels = weight.shape[1] * groups
            reached = reached_sizes(sizes, kernel, stride, padding, dilation)
            places = tuple(a + b for a, b in zip(reached, output_padding, strict=True))
            if any(size <= 0 for size in places):
                raise RuntimeError(
                    f"Given input size per channel: ({' x '.join(map(str, sizes))}). Calculated "
                    f"output size per channel: ({' x '.join(map(str, places))}). Output size is "
                    "too small"
                )
        else:
            channels = weight.shape[0]
            check_fits(sizes, kernel, padding, dilation)
            places = window_counts(sizes, kernel, stride, padding, dilation)
        given = [each for each in (input, weight, bias) if each is not None]
        shape = (input.shape[0], channels, *places)
        out = contiguous(shape, input.dtype, shapes.common_device(given))
        return Inferred(
            (out,),
            {
                "stride": stride, "padding": padding, "dilation": dilation,
                "transposed": transposed, "output_padding": output_padding, "groups": groups,
            },
        )  # fmt: skip

    def lower(
        self, b: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
        transposed: bool, output_padding: Any, groups: int,
    ) -> Any:  # fmt: skip
        out = b.output()
        if input.dtype.is_complex:
            given = stride, padding, dilation, transposed, output_padding, groups
            result = _of_parts(b, input, weight, lambda x, w: self.lower(b, x, w, None, *given))
            return result if bias is None else _with_bias(b, result, bias, input.dtype)
        element = kernel_dtype(input.dtype)
        if 0 in input.shape or 0 in weight.shape or 0 in out.shape:
            result = b.full(tuple(out.shape), 0, element)
            return result if bias is None else _with_bias(b, result, bias, element)
        kernel = tuple(weight.shape[2:])
        is_plain = all(each == 1 for each in (*kernel, *stride, *dilation))
        if is_plain and not any(padding) and not any(output_padding):
            result = _pointwise(b, input, weight, transposed, groups, element)
            result = b.reshape(result, tuple(out.shape))
            return result if bias is None else _with_bias(b, result, bias, element)
        image = _spatial(b, input, element)
        counts = image.shape[2:] if transposed else three(out.shape[2:], 1)
        settings = three(stride, 1), three(padding, 0), three(dilation, 1)
        around = three(out.shape[2:], 1)
        outputs, channels = weight.shape[:2]
        sizes = input.shape[0], counts, outputs, channels, three(kernel, 1), groups
        # Whatever the batch, an image goes the same way: turned only if alone it is not of few.
        if transposed and not few_places.are_few(1, *sizes[1:]):
            turned = _turned(around, counts, three(kernel, 1), settings, outputs // groups)
            if turned is not None:
                transposed, settings, counts = False, turned, around
                weight = _turned_weights(b, weight, groups)
                outputs, channels = weight.shape[:2]
                sizes = input.shape[0], counts, outputs, channels, three(kernel, 1), groups
        if few_places.are_few(*sizes):
            spread = _spatial(b, weight, element)
            if transposed:
                result = few_places.transposed(b, image, spread, around, *settings)
            else:
                result = few_places.forward(b, image, spread, counts, *settings)
            result = b.reshape(result, tuple(out.shape))
            return result if bias is None else _with_bias(b, result, bias, element)
        made = b.temporary((*out.shape[:2], *around), element)
        reads = [image, _weights(b, weight, transposed, groups, element)]
        if bias is not None:
            reads.append(_packed(b, b.convert(bias, element)))
        attributes = {**dict(zip(_SETTINGS, settings, strict=True)), "groups": groups}
        if transposed:
            attributes["kernel"] = three(kernel, 1)
        name = "convolution.transposed" if transposed else "convolution.forward"
        b.kernel(name, reads, (made,), **attributes)
        return b.reshape(made, tuple(out.shape))

    def vjp(
        self, t: Any, grad: Any, input: Any, weight: Any, input_layout: Any, weight_layout: Any,
        stride: Any, padding: Any, dilation: Any, transposed: bool, groups: int, needs: Any,
    ) -> Any:  # fmt: skip
        into_input = into_weight = into_bias = None
        if needs[0]:
            into_input = _slid(
                t, grad, weight, input_layout.shape, stride, padding, dilation, not transposed,
                groups,
            )  # fmt: skip
        if needs[1]:
            image, places = (grad, input) if transposed else (input, grad)
            into_weight = t.convolution_weight(
                image, places, weight_layout.shape, stride, padding, dilation, groups
            )
        if needs[2]:
            spatial = tuple(range(2, input_layout.ndim))
            into_bias = grad.sum(spatial).sum(0)
        return into_input, into_weight, into_bias

    def samples(self, s: Any) -> list[Any]:
        one, two = (1, 1), (0, 0)
        return [
            s(s.real(2, 3, 5, 6), s.real(4, 3, 3, 2), s.real(4), one, one, one, False, two, 1),
            s(s.real(2, 4, 7, 6), s.real(6, 2, 3, 3), None, (2, 3), (1, 0), (1, 2), False, two, 2),
            s(s.real(2, 3, 4, 4), s.real(4, 3, 1, 1), s.real(4), one, two, one, False, two, 1),
            s(s.real(2, 3, 9), s.real(3, 1, 4), s.real(3), (2,), (3,), (2,), False, (0,), 3),
            s(s.real(1, 2, 3, 4, 5), s.real(2, 2, 2, 3, 2), None, (1,), (1,), (1,), False, (0,), 1),
            s(s.real(2, 4, 3, 4), s.real(4, 3, 3, 2), s.real(6), (2, 1), one, one, True, (1, 0), 2),
            s(s.real(2, 3, 5), s.real(3, 2, 4), None, (3,), (2,), (2,), True, (2,), 1),
            s(s.real(2, 3, 2, 2), s.real(3, 4, 1, 1), s.real(4), one, two, one, True, two, 1),
            s(s.real(1, 2, 3, 2), s.real(6, 2, 2, 3), s.real(6), one, (0, 1), one, False, two, 1),
            s(s.real(1, 6, 1, 2), s.real(6, 2, 2, 3), s.real(2), (2, 1), (1, 0), one, True, two, 1),
            s(s.real(1, 8, 3), s.real(8, 2, 2), None, (2,), (0,), (3,), True, (1,), 1),
        ]


@operator("convolution_weight", function=False)
class ConvolutionWeight(Operator):
    """Gradient of a convolution's weights: windows of `image` times cotangents at `places`."""

    holomorphic = True
    out = False
    saved_for = {"image": ("places",), "places": ("image",)}

    def infer(
        self, image: Tensor, places: Tensor, shape: Sizes, stride: Sizes, padding: Sizes,
        dilation: Sizes, groups: int,
    ) -> Inferred:  # fmt: skip
        out = contiguous(tuple(shape), image.dtype, shapes.common_device((image, places)))
        attributes = {"stride": stride, "padding": padding, "dilation": dilation}
        named = {name: tuple(each) for name, each in attributes.items()}
        return Inferred((out,), {"shape": tuple(shape), **named, "groups": groups})

    def lower(
        self, b: Any, image: Any, places: Any, shape: Any, stride: Any, padding: Any,
        dilation: Any, groups: int,
    ) -> Any:  # fmt: skip
        if image.dtype.is_complex:
            return _of_parts(
                b, image, places,
                lambda x, y: self.lower(b, x, y, shape, stride, padding, dilation, groups),
            )  # fmt: skip
        element = kernel_dtype(image.dtype)
        if 0 in image.shape or 0 in places.shape or 0 in shape:
            return b.full(tuple(shape), 0, element)
        outputs, channels, *kernel = shape
        image, places = _spatial(b, image, element), _spatial(b, places, element)
        counts, width = places.shape[2:], three(kernel, 1)
        settings = three(stride, 1), three(padding, 0), three(dilation, 1)
        if few_places.are_few(image.shape[0], counts, outputs, channels, width, groups):
            made = few_places.weight_gradient(b, image, places, width, *settings)
            return b.reshape(made, tuple(shape))
        parts, _ = n_parts(image.shape[0], prod(shape))
        rows = groups * channels * prod(kernel)
        made = b.temporary((parts, rows, outputs // groups), element)
        b.kernel(
            "convolution.weight_gradient",
            (image, places),
            (made,),
            kernel=width,
            **dict(zip(_SETTINGS, settings, strict=True)),
            groups=groups,
        )
        total = b.select(made, 0, 0) if parts == 1 else b.reduce("sum", made, (0,))
        apart = b.reshape(total, (groups, channels * prod(kernel), outputs // groups))
        return b.reshape(b.map(lambda k, x: x, b.transpose(apart, 1, 2)), tuple(shape))

    def vjp(
        self, t: Any, grad: Any, image: Any, places: Any, image_layout: Any, places_layout: Any,
        stride: Any, padding: Any, dilation: Any, groups: int, needs: Any,
    ) -> Any:  # fmt: skip
        into_image = into_places = None
        if needs[0]:
            into_image = _slid(
                t, places, grad, image_layout.shape, stride, padding, dilation, True, groups
            )
        if needs[1]:
            into_places = _slid(
                t, image, grad, places_layout.shape, stride, padding, dilation, False, groups
            )
        return into_image, into_places

    def samples(self, s: Any) -> list[Any]:
        one, two = (1, 1), (0, 0)
        return [
            s(s.real(2, 3, 4, 4), s.real(2, 4, 3, 3), (4, 3, 2, 2), one, two, one, 1),
            s(s.real(2, 4, 6), s.real(2, 2, 3), (2, 2, 3), (2,), (1,), (1,), 2),
            s(s.real(1, 2, 4, 3), s.real(1, 6, 2, 1), (6, 2, 2, 3), (2, 1), two, one, 1),
        ]


def _of_parts(b: Any, left: Any, right: Any, product: Any) -> Any:
    """A product of complex tensors by the four products of their parts."""
    (a, i), (c, d) = b.parts(left), b.parts(right)
    made = product(a, c), product(i, d), product(a, d), product(i, c)
    return b.map(lambda k, w, x, y, z: k.pair(k.sub(w, x), k.add(y, z)), *made, dtype=left.dtype)


def _slid(
    t: Any, input: Any, weight: Any, shape: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, groups: int,
) -> Any:  # fmt: skip
    """The convolution, its result of this shape."""
    extra = (0,) * len(stride)
    if transposed:
        reached = reached_sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation)
        extra = tuple(size - own for size, own in zip(shape[2:], reached, strict=True))
    result = t.convolution(
        input, weight, None, stride, padding, dilation, transposed, extra, groups
    )
    for dim in range(2, len(shape)):  # windows over output padding stand for nothing
        if result.shape[dim] > shape[dim]:
            result = result.narrow(dim, 0, shape[dim])
    return result


def _with_bias(b: Any, value: Any, bias: Any, element: dtype) -> Any:
    shape = (bias.shape[0], *(1,) * (len(value.shape) - 2))
    return b.map(lambda k, x, y: k.add(x, y), value, b.reshape(bias, shape), compute=element)


def _pointwise(
    b: Any, input: Any, weight: Any, transposed: bool, groups: int, element: dtype
) -> Any:
    """A kernel of one place: a plain product for each image and group."""
    batch, channels, *sizes = input.shape
    rows = weight.shape[0] // groups
    weight = b.reshape(b.convert(weight, element), (groups, rows, weight.shape[1]))
    if transposed:
        weight = b.transpose(weight, 1, 2)
    image = b.convert(input, element)
    if groups == 1:
        return b.product(b.select(weight, 0, 0), b.reshape(image, (batch, channels, prod(sizes))))
    return b.product(weight, b.reshape(image, (batch, groups, channels // groups, prod(sizes))))


def _weights(b: Any, weight: Any, transposed: bool, groups: int, element: dtype) -> Any:
    """Weights as the kernels read them: rows of outputs, or of channels and places."""
    weight = b.convert(weight, element)
    outputs, channels, *kernel = weight.shape
    if not transposed:
        return _packed(b, b.reshape(weight, (outputs, channels, *three(kernel, 1))))
    apart = b.reshape(weight, (groups, outputs // groups, channels * prod(kernel)))
    return b.map(lambda k, x: x, b.transpose(apart, 1, 2))


# Additions of a place of a transposed convolution take as long as so many multiply-adds.
_ADDED_UP: Final = 16


def _turned(
    sizes: tuple[int, ...], counts: tuple[int, ...], kernel: tuple[int, ...],
    settings: tuple[Any, ...], channels: int,
) -> tuple[Any, ...] | None:  # fmt: skip
    """Stride, padding and dilation of the convolution of the turned kernel that a transposed one
    is, where the windows of that are not so many more that adding places up is better."""
    stride, padding, dilation = settings
    around = tuple(
        far * (width - 1) - by for far, width, by in zip(dilation, kernel, padding, strict=True)
    )
    reached = reached_sizes(counts, kernel, stride, padding, dilation)
    if any(each != 1 for each in stride) or any(each < 0 for each in around) or reached != sizes:
        return None
    is_more = prod(sizes) * channels > prod(counts) * (channels + _ADDED_UP)
    return None if is_more else (stride, around, dilation)


def _turned_weights(b: Any, weight: Any, groups: int) -> Any:
    """Weights of a transposed convolution as those of a plain one: outputs and channels swapped
    within a group, places of the kernel in reverse."""
    outputs, channels, *kernel = weight.shape
    apart = b.reshape(weight, (groups, outputs // groups, channels, *kernel))
    turned = b.flip(b.transpose(apart, 1, 2), range(3, 3 + len(kernel)))
    return b.reshape(turned, (groups * channels, outputs // groups, *kernel))


def _check_channels(
    input: Layout, weight: Layout, bias: Layout | None, transposed: bool, groups: int
) -> None:
    sizes = list(weight.shape)
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {sizes} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{sizes}] instead"
        )
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != expected:
        kind = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            helped(
                f"Given {kind}, weight of size {sizes}, expected input{list(input.shape)} to have "
                f"{expected} channels, but got {input.shape[1]} channels instead",
                fix=f"an input of {expected} channels in dim 1",
            )
        )
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1' if transposed else f'weight of size {sizes}'}, "
            + (f"weight of size {sizes}, " if transposed else "")
            + f"expected bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )


def _check_dtypes(input: Layout, weight: Layout, bias: Layout | None) -> None:
    fix = f"convert the input with .to({weight.dtype}), or the module"
    for name, other in (("bias", bias), ("weight", weight)):
        if bias is not None and other is not None and input.dtype is not other.dtype:
            message = (
                f"Input type ({_input_type(input)}) and {name} type ({_input_type(other)}) "
                "should be the same"
            )
            raise RuntimeError(helped(message, fix=fix))
    if input.dtype is not weight.dtype:
        message = f"expected scalar type {type_name(input)} but found {type_name(weight)}"
        raise RuntimeError(helped(message, fix=fix))
    if input.dtype is dtypes.bool_:
        raise not_implemented("slow_conv2d_cpu", input.dtype)
