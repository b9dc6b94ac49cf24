"""Fits y = 3x + 1 to 50 noisy points, with gradient descent written by hand.

    python -m flambeau run examples/linear_regression.py
    python examples/linear_regression.py            # the same under PyTorch

An ordinary PyTorch script: tensors, backward() and no_grad(), nothing else.
"""

import argparse

import torch


def points(dtype=torch.float32):
    """50 points near the line y = 3x + 1."""
    x = torch.linspace(0, 5, 50, dtype=dtype)
    noise = torch.randn(50).to(dtype)
    return x, 3 * x + 1 + 0.5 * noise


def losses(steps, seed=42, dtype=torch.float32, fitted=None):
    """Yield the loss of each step; `fitted` (a dict) receives slope and offset at the end."""
    torch.manual_seed(seed)
    x, y = points(dtype)
    slope = torch.tensor([0.0], dtype=dtype, requires_grad=True)
    offset = torch.tensor([0.0], dtype=dtype, requires_grad=True)
    rate = 0.05
    for _ in range(steps):
        loss = ((slope * x + offset - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            slope -= rate * slope.grad
            offset -= rate * offset.grad
        slope.grad.zero_()
        offset.grad.zero_()
        yield loss.item()
    if fitted is not None:
        fitted.update(slope=slope.item(), offset=offset.item())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", help="write the line that was found to this file, too")
    options = parser.parse_args()

    fitted = {}
    for step, loss in enumerate(losses(options.steps, options.seed, fitted=fitted), 1):
        if step == 1 or step % 100 == 0:
            print(f"step {step:4}   loss {loss:.4f}")
    answer = f"y = {fitted['slope']:.3f} x + {fitted['offset']:.3f}"
    print(answer, "  (the points were made from y = 3 x + 1)")
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(answer + "\n")


if __name__ == "__main__":
    main()
