"""torch's answers for operators over windows and steps that torch has no function for."""

import torch
import torch.nn.functional as F


def convolution_weight(image, places, shape, stride, padding, dilation, groups):
    weight = torch.zeros(shape, dtype=image.dtype, requires_grad=True)
    none = [0] * len(stride)
    out = torch.convolution(image, weight, None, stride, padding, dilation, False, none, groups)
    (grad,) = torch.autograd.grad(out, weight, places, create_graph=True)
    return grad


def max_pool(function):
    def called(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        return function(x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)

    return called


def adaptive_max_pool(function):
    return lambda x, size: function(x, size, return_indices=True)


def largest_backward(grad, indices, shape, count):
    lead = shape[: len(shape) - count]
    flat = torch.zeros((*lead, torch.Size(shape[len(shape) - count :]).numel()), dtype=grad.dtype)
    rows = indices.reshape(*lead, -1), grad.reshape(*lead, -1)
    return flat.scatter_add(-1, *rows).reshape(shape)


def means(x, sizes, count, window, divisor, counts_padding):
    kernel, stride, padding, _ = (each[3 - count :] for each in window)
    function = {2: F.avg_pool2d, 3: F.avg_pool3d}[count]
    return function(x, kernel, stride, padding, False, counts_padding, divisor or None)


def means_backward(grad, shape, count, window, divisor, counts_padding):
    x = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
    out = means(x, None, count, window, divisor, counts_padding)
    (found,) = torch.autograd.grad(out, x, grad, create_graph=True)
    return found


def lstm_steps(x, hidden, cell, weight, bias, is_reverse):
    steps = range(x.shape[0])
    made = [None] * len(steps)
    for step in reversed(steps) if is_reverse else steps:
        gates = x[step] + F.linear(hidden, weight, bias)
        enter, forget, candidate, leave = gates.chunk(4, -1)
        enter, forget, leave = enter.sigmoid(), forget.sigmoid(), leave.sigmoid()
        candidate = candidate.tanh()
        cell = forget * cell + enter * candidate
        hidden = leave * cell.tanh()
        made[step] = (hidden, cell, enter, forget, candidate, leave)
    return tuple(torch.stack(each) for each in zip(*made, strict=True))


def lstm_steps_backward(
    into_outputs, into_cells, cells, before, enter, forget, candidate, leave, weight, is_reverse
):
    steps = range(cells.shape[0])
    back = later = torch.zeros_like(cells[0])
    made = [None] * len(steps)
    for step in steps if is_reverse else reversed(steps):
        into_hidden = back + (0 if into_outputs is None else into_outputs[step])
        squashed = cells[step].tanh()
        into_cell = into_hidden * leave[step] * (1 - squashed**2) + later
        into_cell = into_cell + (0 if into_cells is None else into_cells[step])
        i, f, g, o = enter[step], forget[step], candidate[step], leave[step]
        made[step] = torch.cat(
            [
                into_cell * g * i * (1 - i), into_cell * before[step] * f * (1 - f),
                into_cell * i * (1 - g**2), into_hidden * squashed * o * (1 - o),
            ],
            -1,
        )  # fmt: skip
        back, later = made[step] @ weight, into_cell * f
    return torch.stack(made), back, later


def gru_steps(x, hidden, weight, bias, is_reverse):
    steps = range(x.shape[0])
    made = [None] * len(steps)
    for step in reversed(steps) if is_reverse else steps:
        into = x[step].chunk(3, -1)
        back = F.linear(hidden, weight, bias).chunk(3, -1)
        reset, update = (into[n] + back[n] for n in (0, 1))
        reset, update = reset.sigmoid(), update.sigmoid()
        fresh = (into[2] + reset * back[2]).tanh()
        hidden = (1 - update) * fresh + update * hidden
        made[step] = (hidden, reset, update, fresh, back[2])
    return tuple(torch.stack(each) for each in zip(*made, strict=True))


def gru_steps_backward(into_outputs, before, reset, update, fresh, inner, weight, is_reverse):
    steps = range(before.shape[0])
    back = torch.zeros_like(before[0])
    made, made_back = [None] * len(steps), [None] * len(steps)
    for step in steps if is_reverse else reversed(steps):
        into_hidden = back + (0 if into_outputs is None else into_outputs[step])
        r, z, n, y = reset[step], update[step], fresh[step], inner[step]
        into_fresh = into_hidden * (1 - z) * (1 - n**2)
        into_update = into_hidden * (before[step] - n) * z * (1 - z)
        into_reset = into_fresh * y * r * (1 - r)
        made[step] = torch.cat([into_reset, into_update, into_fresh], -1)
        made_back[step] = torch.cat([into_reset, into_update, into_fresh * r], -1)
        back = into_hidden * z + made_back[step] @ weight
    return torch.stack(made), torch.stack(made_back), back


REFERENCES = {
    "convolution_weight": convolution_weight,
    "max_pool2d_with_indices": max_pool(F.max_pool2d),
    "max_pool3d_with_indices": max_pool(F.max_pool3d),
    "adaptive_max_pool2d": adaptive_max_pool(F.adaptive_max_pool2d),
    "adaptive_max_pool3d": adaptive_max_pool(F.adaptive_max_pool3d),
    "largest_of_windows_backward": largest_backward,
    "avg_pool2d": F.avg_pool2d,
    "avg_pool3d": F.avg_pool3d,
    "mean_of_windows": means,
    "mean_of_windows_backward": means_backward,
    "gru_steps": gru_steps,
    "gru_steps_backward": gru_steps_backward,
    "lstm_steps": lstm_steps,
    "lstm_steps_backward": lstm_steps_backward,
}
