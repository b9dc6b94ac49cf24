"""Writes optimizers.json: parameters after five steps of torch's optimizers, in float32, exactly.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_optimizers.py"""

import json
import random
from pathlib import Path

import torch

N_STEPS = 5
SHAPES = [(3, 4), (5,)]
# name -> (class, settings)
SETTINGS = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "sgd nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "sgd dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam amsgrad": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"lr": 0.01, "weight_decay": 0.1}),
    "rmsprop centered": ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9}),
    "adagrad": ("Adagrad", {"lr": 0.01, "lr_decay": 0.1, "weight_decay": 0.1}),
}


def drawn(draw, shape):
    """Multiples of 1/64, so that they are exact in every dtype and as text."""
    count = torch.Size(shape).numel()
    return torch.tensor([draw.randint(-128, 128) / 64 for _ in range(count)]).reshape(shape)


def trajectory(kind, settings):
    draw = random.Random(5)
    parameters = [drawn(draw, shape).requires_grad_() for shape in SHAPES]
    record = {"start": [each.tolist() for each in parameters], "gradients": []}
    optimizer = getattr(torch.optim, kind)(parameters, foreach=False, **settings)
    for _ in range(N_STEPS):
        gradients = [drawn(draw, shape) for shape in SHAPES]
        record["gradients"].append([each.tolist() for each in gradients])
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    record["end"] = [each.tolist() for each in parameters]
    return {"settings": settings, **record}


def main():
    found = {name: trajectory(*SETTINGS[name]) for name in SETTINGS}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    path = Path(__file__).with_name("optimizers.json")
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
