"""Optimizer steps over lists of parameters, one record a step.

Keeps     torch's single-tensor arithmetic, operation by operation and in its order, rounded to the
          parameter's dtype after each; whatever changes from step to step is a run-time number.
Touches   ops.define.
Not here  parameter groups, state and schedules (optim)."""

from __future__ import annotations

from typing import Any

from flambeau.ops.define import Number, Operator, Tensors, operator


class Update(Operator):
    """An operator that writes the lists of tensors named in `updates`."""

    out = False
    differentiable = False

    def each(self, b: Any, formula: Any, *values: Any) -> Any:
        """One tensor's new value, rounded to the dtype of the first; of complex ones each part's,
        as if they were two tensors."""
        if values[0].dtype.is_complex:
            complexes = [each.dtype.is_complex for each in values]

            def by_parts(k: Any, *operands: Any) -> Any:
                real = [k.real(each) for each in operands]
                imag = [
                    k.imag(each) if has_parts else k.real(each)
                    for each, has_parts in zip(operands, complexes, strict=True)
                ]
                return k.pair(formula(k, *real), formula(k, *imag))

            return b.map(by_parts, *values, dtype=values[0].dtype)
        return b.map(formula, *values, compute=values[0].dtype.compute, dtype=values[0].dtype)

    def rounding(self, value: Any) -> Any:
        """What being stored in the value's dtype and read again does, for steps that are one
        statement: memory read by a statement of its own is walked by a kernel of its own."""
        kind = value.dtype.to_real() if value.dtype.is_complex else value.dtype
        return lambda k, x: k.convert(k.convert(x, kind), kind.compute)

    def decayed(self, b: Any, gradient: Any, parameter: Any, decay: Any) -> Any:
        """gradient + decay * parameter, as grad.add(param, alpha=weight_decay)."""
        if not hasattr(decay, "shape") and decay == 0:
            return gradient
        return self.each(b, lambda k, g, p, d: k.fma(p, d, g), gradient, parameter, decay)

    def signed(self, b: Any, gradient: Any, maximize: bool) -> Any:
        """The direction to go down, or up with maximize."""
        return self.each(b, lambda k, g: k.neg(g), gradient) if maximize else gradient

    def squared(self, b: Any, average: Any, gradient: Any, kept: Any, added: Any) -> Any:
        """kept * average + added * gradient^2, as average.mul(kept).addcmul(gradient, gradient)."""
        stored = self.rounding(average)

        def formula(k: Any, v: Any, g: Any, f: Any, a: Any) -> Any:
            return k.fma(k.mul(a, g), g, stored(k, k.mul(v, f)))

        return self.each(b, formula, average, gradient, kept, added)

    def rooted(self, b: Any, value: Any, eps: Any) -> Any:
        """sqrt(value) + eps."""
        root = self.each(b, lambda k, v: k.sqrt(v), value)
        return self.each(b, lambda k, r, e: k.add(r, e), root, eps)

    def stepped(
        self, b: Any, parameter: Any, direction: Any, root: Any, size: Any, keep: Any = 1
    ) -> Any:
        """parameter * keep - size * direction / root, as parameter.addcdiv(direction, root)."""
        if not hasattr(keep, "shape") and keep == 1:
            return self.each(
                b, lambda k, p, d, r, s: k.sub(p, k.div(k.mul(s, d), r)),
                parameter, direction, root, size,
            )  # fmt: skip
        stored = self.rounding(parameter)
        return self.each(
            b, lambda k, p, d, r, s, f: k.sub(stored(k, k.mul(p, f)), k.div(k.mul(s, d), r)),
            parameter, direction, root, size, keep,
        )  # fmt: skip


@operator("sgd_update", function=False)
class SgdUpdate(Update):
    """Stochastic gradient descent with momentum buffers (none: an empty list).

    first_step: the buffers start as the gradients themselves."""

    updates = ("parameters", "momentum_buffers")
    specials = {"weight_decay": (0,), "momentum": (0,), "dampening": (0,)}

    def infer(
        self,
        parameters: Tensors,
        gradients: Tensors,
        momentum_buffers: Tensors,
        lr: Number,
        weight_decay: Number = 0,
        momentum: Number = 0,
        dampening: Number = 0,
        nesterov: bool = False,
        maximize: bool = False,
        first_step: bool = False,
    ) -> tuple[()]:
        return ()

    def lower(
        self, b: Any, parameters: Any, gradients: Any, momentum_buffers: Any, lr: Any,
        weight_decay: Any, momentum: Any, dampening: Any, nesterov: bool, maximize: bool,
        first_step: bool,
    ) -> Any:  # fmt: skip
        new_parameters, new_buffers = [], []
        for position, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            step = self.decayed(b, self.signed(b, gradient, maximize), parameter, weight_decay)
            if momentum_buffers:
                held = step
                if not first_step:
                    held = self.held(b, momentum_buffers[position], step, momentum, dampening)
                new_buffers.append(held)
                if nesterov:
                    step = self.each(b, lambda k, g, h, m: k.fma(h, m, g), step, held, momentum)
                else:
                    step = held
            new_parameters.append(
                self.each(b, lambda k, p, g, r: k.fma(g, k.neg(r), p), parameter, step, lr)
            )
        return new_parameters, new_buffers

    def held(self, b: Any, buffer: Any, step: Any, momentum: Any, dampening: Any) -> Any:
        """momentum * buffer + (1 - dampening) * step."""
        stored = self.rounding(buffer)
        if not hasattr(dampening, "shape") and dampening == 0:
            return self.each(
                b, lambda k, h, g, m: k.add(stored(k, k.mul(h, m)), g), buffer, step, momentum
            )
        return self.each(
            b, lambda k, h, g, m, d: k.fma(g, k.sub(1.0, d), stored(k, k.mul(h, m))),
            buffer, step, momentum, dampening,
        )  # fmt: skip


@operator("adam_update", function=False)
class AdamUpdate(Update):
    """Adam and AdamW, with amsgrad where max_exp_avg_sqs is not empty (Kingma and Ba, 2015;
    Loshchilov and Hutter, 2019).

    step_size is lr / (1 - beta1^t), root_correction sqrt(1 - beta2^t), both worked out in Python
    as torch does; keep is 1 - lr * weight_decay for AdamW, whose weight_decay here is 0."""

    updates = ("parameters", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs")
    specials = {"weight_decay": (0,), "keep": (1,)}

    def infer(
        self,
        parameters: Tensors,
        gradients: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        step_size: Number,
        root_correction: Number,
        one_minus_beta1: Number,
        beta2: Number,
        one_minus_beta2: Number,
        eps: Number,
        weight_decay: Number = 0,
        keep: Number = 1,
        maximize: bool = False,
    ) -> tuple[()]:
        return ()

    def lower(
        self, b: Any, parameters: Any, gradients: Any, exp_avgs: Any, exp_avg_sqs: Any,
        max_exp_avg_sqs: Any, step_size: Any, root_correction: Any, one_minus_beta1: Any,
        beta2: Any, one_minus_beta2: Any, eps: Any, weight_decay: Any, keep: Any, maximize: bool,
    ) -> Any:  # fmt: skip
        results: tuple[list[Any], ...] = ([], [], [], [])
        for position, parameter in enumerate(parameters):
            gradient = self.signed(b, gradients[position], maximize)
            gradient = self.decayed(b, gradient, parameter, weight_decay)
            mean = self.lerped(b, exp_avgs[position], gradient, one_minus_beta1)
            square = self.squared(b, exp_avg_sqs[position], gradient, beta2, one_minus_beta2)
            largest = square
            if max_exp_avg_sqs:
                largest = self.each(
                    b, lambda k, m, v: k.max(m, v), max_exp_avg_sqs[position], square
                )
                results[3].append(largest)
            root = self.each(b, lambda k, v: k.sqrt(v), largest)
            root = self.each(b, lambda k, r, c: k.div(r, c), root, root_correction)
            root = self.each(b, lambda k, r, e: k.add(r, e), root, eps)
            results[0].append(self.stepped(b, parameter, mean, root, step_size, keep))
            results[1].append(mean)
            results[2].append(square)
        return results

    def lerped(self, b: Any, mean: Any, gradient: Any, weight: Any) -> Any:
        """mean.lerp(gradient, weight)."""

        def formula(k: Any, m: Any, g: Any, w: Any) -> Any:
            near = k.lt(w, 0.5)
            share = k.select(near, w, k.sub(w, 1.0))
            return k.fma(share, k.sub(g, m), k.select(near, m, g))

        return self.each(b, formula, mean, gradient, weight)


@operator("rmsprop_update", function=False)
class RmspropUpdate(Update):
    """RMSprop, centred where grad_avgs is not empty, with momentum where momentum_buffers is not
    (Tieleman and Hinton, 2012)."""

    updates = ("parameters", "square_avgs", "grad_avgs", "momentum_buffers")
    specials = {"weight_decay": (0,)}

    def infer(
        self,
        parameters: Tensors,
        gradients: Tensors,
        square_avgs: Tensors,
        grad_avgs: Tensors,
        momentum_buffers: Tensors,
        lr: Number,
        alpha: Number,
        one_minus_alpha: Number,
        eps: Number,
        weight_decay: Number = 0,
        momentum: Number = 0,
        maximize: bool = False,
    ) -> tuple[()]:
        return ()

    def lower(
        self, b: Any, parameters: Any, gradients: Any, square_avgs: Any, grad_avgs: Any,
        momentum_buffers: Any, lr: Any, alpha: Any, one_minus_alpha: Any, eps: Any,
        weight_decay: Any, momentum: Any, maximize: bool,
    ) -> Any:  # fmt: skip
        results: tuple[list[Any], ...] = ([], [], [], [])
        for position, parameter in enumerate(parameters):
            gradient = self.signed(b, gradients[position], maximize)
            gradient = self.decayed(b, gradient, parameter, weight_decay)
            square = self.squared(b, square_avgs[position], gradient, alpha, one_minus_alpha)
            spread = square
            if grad_avgs:
                mean = self.each(
                    b, lambda k, m, g, w: k.fma(w, k.sub(g, m), m),
                    grad_avgs[position], gradient, one_minus_alpha,
                )  # fmt: skip
                results[2].append(mean)
                spread = self.each(b, lambda k, v, m: k.fma(k.neg(m), m, v), square, mean)
            root = self.rooted(b, spread, eps)
            if momentum_buffers:
                held = momentum_buffers[position]
                stored = self.rounding(held)
                held = self.each(
                    b, lambda k, h, m, g, r, o=stored: k.add(o(k, k.mul(h, m)), k.div(g, r)),
                    held, momentum, gradient, root,
                )  # fmt: skip
                results[3].append(held)
                new = self.each(b, lambda k, p, h, r: k.fma(h, k.neg(r), p), parameter, held, lr)
            else:
                new = self.stepped(b, parameter, gradient, root, lr)
            results[0].append(new)
            results[1].append(square)
        return results


@operator("adagrad_update", function=False)
class AdagradUpdate(Update):
    """Adagrad (Duchi et al., 2011); step_size is lr / (1 + (t - 1) * lr_decay)."""

    updates = ("parameters", "state_sums")
    specials = {"weight_decay": (0,)}

    def infer(
        self,
        parameters: Tensors,
        gradients: Tensors,
        state_sums: Tensors,
        step_size: Number,
        eps: Number,
        weight_decay: Number = 0,
        maximize: bool = False,
    ) -> tuple[()]:
        return ()

    def lower(
        self, b: Any, parameters: Any, gradients: Any, state_sums: Any, step_size: Any, eps: Any,
        weight_decay: Any, maximize: bool,
    ) -> Any:  # fmt: skip
        results: tuple[list[Any], ...] = ([], [])
        for position, parameter in enumerate(parameters):
            gradient = self.signed(b, gradients[position], maximize)
            gradient = self.decayed(b, gradient, parameter, weight_decay)
            total = self.each(b, lambda k, s, g: k.fma(g, g, s), state_sums[position], gradient)
            root = self.rooted(b, total, eps)
            results[0].append(self.stepped(b, parameter, gradient, root, step_size))
            results[1].append(total)
        return results
