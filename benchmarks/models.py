"""The models that workloads train, made from whatever module offers torch's API.

Keeps     a model depends on nothing but the module it is given.
Touches   nothing.
Not here  training and timing (workloads.py, serve.py)."""

import itertools
import math


def mlp(torch, widths, activation):
    """Linear layers of these widths with the activation between them."""
    layers = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), activation()]
    return torch.nn.Sequential(*layers[:-1])


def ConvNet(torch):
    """Two convolutions with batch norm and pooling, for 32 x 32 images in colour."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 64, 10),
    )  # fmt: skip


def SequenceReader(torch):
    """An LSTM that reads a sequence and names one of ten classes."""

    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(64, 128, batch_first=True)
            self.head = torch.nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Reader()


def CharGPT(torch, vocabulary=96, width=128, heads=4, layers=4, context=128):
    """A transformer over characters, its attention written out."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            batch, length, _ = x.shape
            shape = batch, length, heads, width // heads
            parts = self.qkv(x).split(width, dim=2)
            query, key, value = (part.view(*shape).transpose(1, 2) for part in parts)
            future = torch.tril(torch.ones(length, length)) == 0
            scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(width // heads))
            weights = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
            mixed = (weights @ value).transpose(1, 2).contiguous().view(batch, length, width)
            return self.project(mixed)

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, index):
            x = self.tokens(index) + self.places(torch.arange(index.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Model()
