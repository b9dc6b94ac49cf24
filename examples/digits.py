"""Trains a small network to read handwritten digits, with a progress bar and plots.

    python -m flambeau run examples/digits.py
    python examples/digits.py                       # the same under PyTorch

1,797 real 8x8 images (data/SOURCES.md); every fifth one is kept for testing. Writes
digits_training.png (loss and accuracy) and digits_answers.png (images and the model's answers).
"""

import argparse
import csv
import gzip
import statistics
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).resolve().parent / "data" / "digits.csv.gz"


def load_digits(dtype=torch.float32):
    """Training images, training labels, test images, test labels; pixels from 0 to 1."""
    with gzip.open(DATA, "rt", newline="") as file:
        table = torch.tensor([[int(cell) for cell in row] for row in csv.reader(file)])
    images, labels = table[:, :64].to(dtype) / 16, table[:, 64]
    is_test = torch.arange(len(labels)) % 5 == 0
    return images[~is_test], labels[~is_test], images[is_test], labels[is_test]


class Reader(nn.Module):
    """Two hidden layers; 64 pixels in, a score for each of the ten digits out."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 10),
        )

    def forward(self, images):
        return self.layers(images)


def training(steps, seed=0, dtype=torch.float32):
    """Yield (loss, model) after each step of Adam on a minibatch of 64."""
    torch.manual_seed(seed)
    images, labels, _, _ = load_digits(dtype)
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    model = Reader().to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step = 0
    while True:
        for batch, target in loader:
            if step == steps:
                return
            model.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            step += 1
            yield loss.item(), model


def losses(steps, seed=0, dtype=torch.float32):
    """Yield the loss of each step."""
    for loss, _ in training(steps, seed, dtype):
        yield loss


@torch.no_grad()
def accuracy(model, images, labels):
    """Share of the images that the model reads rightly."""
    model.eval()
    return (model(images).argmax(1) == labels).float().mean().item()


def train(steps, seed, bar):
    """Train one network; returns it, the losses, and (step, accuracy) on the test images."""
    _, _, images, labels = load_digits()
    history, scores, model = [], [], None
    for step, (loss, model) in enumerate(training(steps, seed), 1):
        history.append(loss)
        bar.update()
        if step % 23 == 0 or step == steps:
            scores.append((step, accuracy(model, images, labels)))
            bar.set_postfix(loss=f"{loss:.3f}", accuracy=f"{scores[-1][1]:.1%}")
    return model, history, scores


def save_plots(folder, model, history, scores):
    """Write the two pictures; returns their paths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    left.plot(range(1, len(history) + 1), history, linewidth=0.8)
    left.set(title="training loss", xlabel="step", yscale="log")
    right.plot([step for step, _ in scores], [100 * score for _, score in scores])
    right.set(title="test accuracy, %", xlabel="step")
    training_path = folder / "digits_training.png"
    figure.savefig(training_path, dpi=120)
    pyplot.close(figure)

    _, _, images, labels = load_digits()
    with torch.no_grad():
        answers = model(images).argmax(1)
    wrong = (answers != labels).nonzero().flatten().tolist()
    shown = (wrong + [k for k in range(len(labels)) if k not in wrong])[:24]
    figure, axes = pyplot.subplots(3, 8, figsize=(9, 4.2), layout="constrained")
    figure.suptitle(f"the model's answers: all mistakes first ({len(wrong)} of {len(labels)})")
    for axis, k in zip(axes.flat, shown):
        axis.imshow(images[k].reshape(8, 8).numpy(), cmap="gray_r")
        answer, label = int(answers[k]), int(labels[k])
        color = "green" if answer == label else "red"
        axis.set_title(f"{answer}" if answer == label else f"{answer}, is {label}", color=color)
        axis.axis("off")
    answers_path = folder / "digits_answers.png"
    figure.savefig(answers_path, dpi=120)
    pyplot.close(figure)
    return training_path, answers_path


def main():
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=920, help="23 steps are one epoch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="train so many networks")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    options = parser.parse_args()

    results = []
    for seed in range(options.seed, options.seed + options.seeds):
        with tqdm(total=options.steps, desc=f"seed {seed}", unit="step") as bar:
            model, history, scores = train(options.steps, seed, bar)
        results.append(scores[-1][1])
        print(f"seed {seed}: test accuracy {results[-1]:.2%}, last loss {history[-1]:.4f}")
    if len(results) > 1:
        print(f"median test accuracy of {len(results)} seeds: {statistics.median(results):.2%}")
    for path in save_plots(options.out, model, history, scores):
        print("wrote", path)


if __name__ == "__main__":
    main()
