"""A small transformer learns Shakespeare letter by letter, then writes some of its own.

    python -m flambeau run examples/char_gpt.py
    python examples/char_gpt.py                     # the same under PyTorch

4 layers of width 128, 4 heads, context 128; the text is "As You Like It" (data/SOURCES.md).
"""

import argparse
import math
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = Path(__file__).resolve().parent / "data" / "as_you_like_it.txt"
CONTEXT = 128


class Attention(nn.Module):
    """Every position looks at itself and at what came before, through several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.register_buffer("future", torch.ones(CONTEXT, CONTEXT).triu(1).bool())

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(x).split(width, dim=2)
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = (F.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(batch, length, width)
        return self.output(mixed)


class Block(nn.Module):
    """Attention, then a small network at each position; both are added to their input."""

    def __init__(self, width, heads):
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


class CharGPT(nn.Module):
    """Letters in, a score for every possible next letter out."""

    def __init__(self, n_letters, width=128, heads=4, layers=4):
        super().__init__()
        self.letters = nn.Embedding(n_letters, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, n_letters, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, index):
        x = self.letters(index) + self.places(torch.arange(index.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Alphabet:
    """Letters to numbers and back."""

    def __init__(self, text):
        self.letters = sorted(set(text))
        self.number = {letter: number for number, letter in enumerate(self.letters)}

    def encode(self, text):
        return torch.tensor([self.number[letter] for letter in text])

    def decode(self, numbers):
        return "".join(self.letters[number] for number in numbers)


def training(steps, seed=0, dtype=torch.float32, batch=8):
    """Yield (loss, model, alphabet) after each step of AdamW on random pieces of the text."""
    torch.manual_seed(seed)
    text = TEXT.read_text(encoding="utf-8")
    alphabet = Alphabet(text)
    letters = alphabet.encode(text)
    model = CharGPT(len(alphabet.letters)).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(steps):
        starts = torch.randint(0, len(letters) - CONTEXT - 1, (batch,)).tolist()
        pieces = torch.stack([letters[start : start + CONTEXT + 1] for start in starts])
        scores = model(pieces[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), pieces[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item(), model, alphabet


def losses(steps, seed=0, dtype=torch.float32):
    """Yield the loss of each step (in nats a letter)."""
    for loss, _, _ in training(steps, seed, dtype):
        yield loss


@torch.no_grad()
def write(model, alphabet, opening, length, temperature=0.8):
    """The model's continuation of `opening`, one letter at a time."""
    index = alphabet.encode(opening)[None]
    for _ in range(length):
        scores = model(index[:, -CONTEXT:])[:, -1] / temperature
        index = torch.cat([index, torch.multinomial(F.softmax(scores, dim=-1), 1)], dim=1)
    return alphabet.decode(index[0].tolist())


def main():
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=300, help="letters to write at the end")
    parser.add_argument("--out", help="write the sample to this file, too")
    options = parser.parse_args()

    with tqdm(total=options.steps, unit="step") as bar:
        model, alphabet = None, None
        for step, result in enumerate(training(options.steps, options.seed), 1):
            loss, model, alphabet = result
            bar.update()
            bar.set_postfix(loss=f"{loss:.3f}")
            if step == 1 or step % 50 == 0:
                bar.write(f"step {step:4}   loss {loss:.3f}")
    sample = write(model, alphabet, "\nROSALIND\t", options.length)
    print(sample)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(sample + "\n")


if __name__ == "__main__":
    main()
