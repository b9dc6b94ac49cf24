"""Layers and losses, written once against torch's API; run under torch and under flambeau.

Keeps     each case is a layer as text and its inputs: a shape is drawn from U(-2, 2) in float64,
          a text is evaluated. An answer holds the repr, what was drawn, outputs and gradients.
Touches   whichever module is given as `torch`.
Not here  recording (record_layers.py), comparing (tests/nn/test_recorded.py)."""

from __future__ import annotations

import warnings
from typing import Any

IMAGE, ROWS, CLASSES = (2, 4, 9, 7), (4, 5), "torch.tensor([1, 0, 3, 2])"
SIGNS = "torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)"
INDEX = "torch.tensor([[1, 2, 0], [4, 2, 3]])"
FLAT = "torch.tensor([1, 2, 0, 4, 2, 3])"
LABELS = "torch.tensor([[1, 2, 1], [3, 3, 2]])"
SHARES = "data(4, 5).softmax(1)"
BYTES = "(data(2, 3, 9, 7) * 64 + 128).clamp(0, 255).to(torch.uint8)"
PLAIN = (
    "ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish Sigmoid Tanh LogSigmoid Softsign Tanhshrink "
    "Hardtanh ELU CELU GLU GELU Hardshrink Softshrink LeakyReLU Softplus PReLU RReLU Flatten "
    "Identity Dropout AlphaDropout"
).split()

CASES: list[tuple[Any, ...]] = [
    *((f"nn.{name}()", (4, 6)) for name in PLAIN),
    ("nn.Linear(5, 3)", (4, 5)),
    ("nn.Linear(5, 3, bias=False)", (2, 4, 5)),
    ("nn.Bilinear(5, 3, 4)", (6, 5), (6, 3)),
    ("nn.Embedding(6, 4, padding_idx=2)", INDEX),
    ("nn.Embedding(6, 4, max_norm=1.0)", INDEX),
    ("nn.EmbeddingBag(6, 4, mode='sum')", INDEX),
    ("nn.EmbeddingBag(6, 4)", INDEX),
    ("nn.EmbeddingBag(6, 4, mode='max')", INDEX),
    ("nn.Threshold(0.1, 20)", (4, 6)),
    ("nn.GELU('tanh')", (4, 6)),
    ("nn.PReLU(3)", (4, 3, 2)),
    ("nn.Softmax(dim=1)", (4, 3, 2)),
    ("nn.LogSoftmax(dim=-1)", (4, 3, 2)),
    ("nn.Softmin(dim=0)", (4, 3)),
    ("nn.Softmax2d()", (4, 3, 2, 2)),
    ("nn.Unflatten(1, (2, 3))", (4, 6)),
    ("nn.Dropout1d(0.4)", (4, 6, 3)),
    ("nn.Dropout2d(0.4)", (4, 6, 3, 2)),
    ("nn.FeatureAlphaDropout(0.4)", (4, 6, 3, 2, 2)),
    ("nn.LayerNorm(6)", (4, 6)),
    ("nn.LayerNorm((3, 6), bias=False)", (4, 3, 6)),
    ("nn.RMSNorm(6)", (4, 6)),
    ("nn.GroupNorm(2, 6)", (4, 6, 3)),
    ("nn.LocalResponseNorm(2)", (4, 6, 3)),
    ("nn.BatchNorm1d(3)", (5, 3)),
    ("nn.BatchNorm2d(3)", (5, 3, 2, 2)),
    ("nn.BatchNorm2d(3).eval()", (5, 3, 2, 2)),
    ("nn.BatchNorm2d(3, affine=False, track_running_stats=False)", (5, 3, 2, 2)),
    ("nn.BatchNorm3d(3, momentum=None)", (2, 3, 2, 2, 2)),
    ("nn.InstanceNorm1d(3)", (5, 3, 4)),
    ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", (5, 3, 2, 2)),
    ("nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))", (4, 5)),
    ("nn.Conv1d(4, 6, 3)", (2, 4, 9)),
    ("nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)", IMAGE),
    ("nn.Conv2d(4, 6, 2, dilation=2, bias=False)", IMAGE),
    ("nn.Conv2d(4, 6, 4, padding='same')", IMAGE),
    ("nn.Conv2d(4, 6, 3, padding=2, padding_mode='reflect')", IMAGE),
    ("nn.Conv2d(4, 6, 3, padding=2, padding_mode='circular')", IMAGE),
    ("nn.Conv2d(4, 6, 3)", (4, 9, 7)),
    ("nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1)", (2, 4, 9)),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, groups=2)", IMAGE),
    ("nn.ConvTranspose2d(4, 6, 2, dilation=2)", IMAGE),
    ("nn.MaxPool1d(2)", (2, 4, 9)),
    ("nn.MaxPool2d(3, stride=2, padding=1)", IMAGE),
    ("nn.MaxPool2d(3, stride=2, ceil_mode=True)", IMAGE),
    ("nn.MaxPool2d(2, dilation=2)", IMAGE),
    ("nn.MaxPool2d(2, return_indices=True)", IMAGE),
    ("nn.AvgPool1d(3, stride=2, padding=1)", (2, 4, 9)),
    ("nn.AvgPool2d(3, padding=1, count_include_pad=False)", IMAGE),
    ("nn.AvgPool2d(3, stride=2, ceil_mode=True)", IMAGE),
    ("nn.AdaptiveAvgPool2d(3)", IMAGE),
    ("nn.AdaptiveMaxPool2d((2, None))", IMAGE),
    ("nn.MaxUnpool2d(2)", (1, 1, 2, 2), "torch.tensor([[[[0, 3], [9, 15]]]])"),
    ("nn.RNN(5, 4, nonlinearity='relu')", (3, 2, 5)),
    ("nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)", (2, 3, 5)),
    ("nn.LSTM(5, 4, proj_size=3)", (3, 2, 5)),
    ("nn.GRU(5, 4, 2, dropout=0.3, bias=False)", (3, 2, 5)),
    ("nn.LSTM(5, 4)", (3, 5)),
    ("nn.RNNCell(5, 4)", (2, 5)),
    ("nn.LSTMCell(5, 4)", (2, 5)),
    ("nn.GRUCell(5, 4)", (5,)),
    ("nn.MultiheadAttention(8, 2)", (3, 2, 8), (3, 2, 8), (3, 2, 8)),
    (
        (
            "nn.MultiheadAttention(8, 2, kdim=5, vdim=6, add_bias_kv=True, add_zero_attn=True, "
            "batch_first=True)"
        ),
        (2, 3, 8), (2, 4, 5), (2, 4, 6),
    ),
    ("nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, batch_first=True)", (3, 2, 8)),
    ("nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)", (3, 2, 8), (4, 2, 8)),
    ("nn.Upsample(scale_factor=2)", IMAGE),
    ("nn.Upsample(scale_factor=2, mode='bilinear')", IMAGE),
    ("nn.Upsample(size=(7, 9), mode='bilinear', align_corners=True)", IMAGE),
    ("nn.ReflectionPad2d(1)", (2, 3, 4, 5)),
    ("nn.ReplicationPad2d((1, 2, 3, 0))", (2, 3, 4, 5)),
    ("nn.CircularPad1d(2)", (2, 3, 4)),
    ("nn.ConstantPad2d((1, -1, 0, 2), 3.5)", (2, 3, 4, 5)),
    ("nn.Unfold(2, padding=1)", (2, 3, 4, 5)),
    ("nn.Fold((4, 5), 2)", (2, 12, 12)),
    ("nn.CosineSimilarity()", ROWS, ROWS),
    ("nn.PairwiseDistance()", ROWS, ROWS),
    ("nn.PixelShuffle(2)", (2, 8, 3, 3)),
    ("nn.PixelUnshuffle(2)", (2, 2, 4, 4)),
    ("nn.ChannelShuffle(2)", (2, 8, 3, 3)),
    ("nn.L1Loss()", ROWS, ROWS),
    ("nn.MSELoss(reduction='sum')", ROWS, ROWS),
    ("nn.CrossEntropyLoss()", ROWS, CLASSES),
    (
        (
            "nn.CrossEntropyLoss(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5]), label_smoothing=0.1, "
            "ignore_index=3)"
        ),
        ROWS, CLASSES,
    ),
    ("nn.CrossEntropyLoss()", ROWS, SHARES),
    ("nn.NLLLoss(reduction='none')", ROWS, CLASSES),
    ("nn.PoissonNLLLoss(full=True)", ROWS, "data(4, 5).abs()"),
    ("nn.GaussianNLLLoss(full=True)", ROWS, ROWS, "data(4, 5).abs()"),
    ("nn.KLDivLoss(reduction='batchmean')", ROWS, SHARES),
    ("nn.BCELoss()", "data(4, 5).sigmoid()", "data(4, 5, seed=2).sigmoid()"),
    ("nn.BCELoss()", ROWS, ROWS),
    ("nn.BCEWithLogitsLoss(pos_weight=torch.arange(1.0, 6.0))", ROWS, SHARES),
    ("nn.HingeEmbeddingLoss()", (4,), SIGNS),
    ("nn.SmoothL1Loss(beta=0.5)", ROWS, ROWS),
    ("nn.HuberLoss(delta=0.7)", ROWS, ROWS),
    ("nn.MultiLabelSoftMarginLoss()", ROWS, "(data(4, 5) > 0).double()"),
    ("nn.CosineEmbeddingLoss(margin=0.1)", ROWS, ROWS, SIGNS),
    ("nn.MarginRankingLoss(0.2)", (4,), (4,), SIGNS),
    ("nn.MultiMarginLoss(p=2, weight=torch.arange(1.0, 6.0))", ROWS, CLASSES),
    ("nn.TripletMarginLoss(swap=True)", ROWS, ROWS, ROWS),
    ("nn.CTCLoss()", (6, 2, 5), LABELS, "torch.tensor([6, 5])", "torch.tensor([2, 3])"),
    ("nn.CTCLoss(4, 'sum')", (6, 2, 5), LABELS, "(6, 5)", "(2, 1)"),
    ("nn.CTCLoss(reduction='none')", (6, 2, 5), LABELS, "(5, 6)", "(3, 3)"),
    ("nn.CTCLoss(zero_infinity=True)", (3, 2, 5), LABELS, "(3, 3)", "(3, 3)"),
    ("nn.CTCLoss()", (6, 5), "torch.tensor([1, 2])", "torch.tensor(6)", "torch.tensor(2)"),
    ("nn.CTCLoss(5)", (6, 2, 5), LABELS, "(6, 5)", "(2, 3)"),
    # What is left where every target is ignored, and where targets are of other kinds.
    ("nn.CrossEntropyLoss(ignore_index=3)", ROWS, "torch.full((4,), 3)"),
    ("nn.CrossEntropyLoss(ignore_index=3, label_smoothing=0.1)", ROWS, "torch.full((4,), 3)"),
    ("nn.NLLLoss(ignore_index=3)", ROWS, "torch.full((4,), 3)"),
    ("nn.NLLLoss()", ROWS, f"{CLASSES}.to(torch.uint8)"),
    ("nn.CrossEntropyLoss()", ROWS, f"{CLASSES}.to(torch.uint8)"),
    ("nn.CrossEntropyLoss(ignore_index=3)", ROWS, SHARES),
    ("nn.CrossEntropyLoss(torch.ones(4))", ROWS, SHARES),
    ("nn.CrossEntropyLoss()", ROWS, f"{SHARES}.float()"),
    ("nn.CrossEntropyLoss()", ROWS, "torch.tensor(1)"),
    ("nn.MSELoss()", (0, 5), (0, 5)),
    ("nn.MSELoss()", ROWS, "data(4, 5) > 0"),
    ("nn.SmoothL1Loss()", ROWS, "data(4, 5) > 0"),
    ("nn.KLDivLoss()", ROWS, (5,)),
    ("nn.KLDivLoss(log_target=True, reduction='sum')", ROWS, (4, 1)),
    ("nn.KLDivLoss(reduction='none')", ROWS, (4, 1)),
    ("nn.BCELoss()", "data(4, 5).sigmoid()", ROWS),
    ("nn.BCELoss(torch.ones(4, 5))", "data(5).sigmoid()", "data(5).sigmoid()"),
    ("nn.BCEWithLogitsLoss()", ROWS, "torch.ones(4, 5, dtype=torch.int64)"),
    ("nn.BCEWithLogitsLoss(torch.ones(4, 5))", (5,), "data(5).sigmoid()"),
    ("nn.GroupNorm(2, 6)", (3, 6)),
    ("nn.GroupNorm(6, 6)", (1, 6)),
    ("nn.GroupNorm(2, 6, affine=False)", (2, 6, 3, 2)),
    ("nn.InstanceNorm1d(3, affine=True)", (5, 3, 4)),
    ("nn.InstanceNorm1d(4, track_running_stats=True)", (5, 3, 4)),
    ("nn.InstanceNorm1d(4)", (0, 4, 5)),
    ("nn.InstanceNorm2d(4)", (2, 4, 0)),
    ("nn.BatchNorm1d(4, eps=0)", (5, 4)),
    ("nn.BatchNorm1d(4, eps=-1).eval()", (5, 4)),
    ("nn.RMSNorm((3, 6))", (6,)),
    ("nn.CircularPad1d((-1, 1))", (2, 3, 5)),
    ("nn.CircularPad2d((2, -1, -2, 1))", (2, 3, 5, 6)),
    ("nn.CircularPad2d((-4, -4, 0, 0))", (2, 3, 5, 6)),
    ("nn.ReflectionPad2d(0)", (2, 3, 4, 5)),
    ("nn.ReflectionPad1d((-2, -3))", (2, 3, 4)),
    ("nn.ReplicationPad2d(1)", (2, 0, 4, 5)),
    ("nn.ReplicationPad1d(1)", (4,)),
    ("nn.ConstantPad1d(1.5, 0)", (2, 3, 4)),
    ("nn.Dropout2d(0.4)", (4, 6, 3)),
    ("nn.Dropout2d()", (4,)),
    ("nn.Dropout3d(0.4)", (4, 6)),
    ("nn.Dropout3d(0.4)", (4, 6, 3)),
    ("nn.PReLU()", "data(4, 3).float()"),
    ("nn.MaxPool1d(-1)", (2, 3, 9)),
    ("nn.MaxPool1d(1, padding=1)", (2, 3, 9)),
    ("nn.MaxPool1d(2)", "torch.ones(2, 3, 9, dtype=torch.int64)"),
    ("nn.MaxPool2d(-1)", (2, 3, 9, 9)),
    ("nn.MaxPool2d(3, dilation=9)", (2, 3, 9, 9)),
    ("nn.MaxPool2d('a')", (2, 3, 9, 9)),
    ("nn.AvgPool1d(2)", (4,)),
    ("nn.AdaptiveAvgPool2d(2)", "data(3, 0, 4, 4)"),
    ("nn.AdaptiveMaxPool1d((2, 2))", (2, 3, 9)),
    ("nn.AdaptiveMaxPool3d(2)", (4, 5)),
    ("nn.MaxUnpool2d(2)", (1, 1, 2, 2), "torch.tensor([[[[0, 3], [9, 15]]]], dtype=torch.int32)"),
    ("nn.MaxUnpool2d(2)", (1, 1, 2, 2), "torch.tensor([[[[0, 3]]]])"),
    (
        "nn.MaxUnpool2d(2)", (1, 1, 2, 2), "torch.tensor([[[[0, 3], [9, 15]]]])", "(100, 100)",
    ),
    ("nn.RNN(5, 4)", (0, 2, 5)),
    ("nn.RNN(0, 4)", (3, 2, 5)),
    ("nn.GRU(5, 4, bias=0)", (3, 2, 5)),
    ("nn.RNN(5, 4)", (5,)),
    ("nn.GRU(5, 4)", (3, 2, 5), "data(1, 2, 4).float()"),
    ("nn.LSTM(5, 4)", (3, 5), "(data(1, 2, 4), data(1, 2, 4))"),
    ("nn.LSTM(5, 4)", (3, 2, 5), "(data(1, 2, 4), data(1, 2, 3))"),
    ("nn.LSTM(5, 4)", (3, 2, 5), "data(1, 2, 4)"),
    ("nn.RNNCell(5, 4)", (2, 4)),
    ("nn.LSTMCell(5, 4)", (2, 5), "(data(2, 4), data(3, 4))"),
    ("nn.LSTMCell(5, 4)", (2, 5), "(data(2, 2, 4), data(2, 4))"),
    ("nn.GRUCell(5, 4)", (2, 5), (2, 3)),
    ("nn.EmbeddingBag(6, 4)", FLAT, "torch.tensor([0, 2, 6])"),
    ("nn.EmbeddingBag(6, 4, mode='sum', include_last_offset=True)", FLAT, "torch.tensor([0, 6])"),
    ("nn.EmbeddingBag(6, 4)", "torch.zeros(0, dtype=torch.int64)", "torch.tensor([]).long()"),
    ("nn.EmbeddingBag(6, 4)", FLAT, "torch.tensor([1, 2])"),
    ("nn.EmbeddingBag(6, 4)", FLAT, "torch.tensor([0, 9])"),
    ("nn.EmbeddingBag(6, 4, mode='max', scale_grad_by_freq=True)", INDEX),
    ("nn.EmbeddingBag(6, 4, mode='sum')", INDEX, "None", "data(2, 3).float()"),
    ("nn.EmbeddingBag(6, 4, mode='sum')", INDEX, "None", "data(2, 2)"),
    ("nn.EmbeddingBag.from_pretrained(torch.ones(6, 4), freeze=False, mode='sum')", INDEX),
    ("nn.Upsample(scale_factor=-1)", IMAGE),
    ("nn.Upsample(size=0, mode='bilinear')", IMAGE),
    ("nn.Upsample(size=0)", (2, 4, 9)),
    ("nn.Upsample(scale_factor=2)", (2, 0, 3, 3)),
    ("nn.Upsample(scale_factor=2)", (3, 5)),
    ("nn.Upsample(scale_factor=2, mode='linear')", IMAGE),
    ("nn.Upsample(size=7, recompute_scale_factor=True)", IMAGE),
    ("nn.SyncBatchNorm(3, bias=False).eval()", (5, 3, 2)),
    ("nn.MultiheadAttention(8, 2)", (8,), (8,), (8,)),
    ("nn.MultiheadAttention(8, 2)", (3, 8), (4, 2, 8), (4, 2, 8)),
    ("nn.MultiheadAttention(8, 2)", (3, 2, 8), (4, 8), (4, 8)),
    ("nn.MultiheadAttention(8, 2)", (3, 2, 8), (4, 2, 8), (4, 2, 8), "torch.zeros(4)"),
    ("nn.MultiheadAttention(8, 2)", (3, 2, 8), (4, 2, 8), (4, 2, 8), "torch.zeros(3, 4)"),
    (
        "nn.MultiheadAttention(8, 2)", (3, 2, 8), (4, 2, 8), (4, 2, 8), "None", "True", "None",
        "True", "True",
    ),
    ("nn.TripletMarginWithDistanceLoss()", ROWS, ROWS, ROWS),
    ("nn.Hardtanh(2, 1)", ROWS),
    ("nn.LPPool1d(float('inf'), 2)", (2, 4, 9)),
    ("nn.LPPool2d(-float('inf'), 2)", IMAGE),
    ("nn.LPPool3d(2, 2, ceil_mode=True)", "data(2, 3, 4, 5, 4).abs()"),
    ("nn.FractionalMaxPool2d(2, output_ratio=0.5)", IMAGE),
    ("nn.FractionalMaxPool2d(2, output_size=(3, 1), return_indices=True)", (4, 9, 7)),
    ("nn.FractionalMaxPool3d(2, output_size=2)", (2, 3, 4, 5, 4)),
    ("nn.FractionalMaxPool2d(2)", IMAGE),
    ("nn.FractionalMaxPool2d(2, 3, 0.5)", IMAGE),
    ("nn.FractionalMaxPool2d(2, output_ratio=1.5)", IMAGE),
    ("nn.FractionalMaxPool2d(8, 3)", IMAGE),
    ("nn.FractionalMaxPool3d(2, 2)", (3, 4, 5)),
    ("nn.CircularPad1d(1)", (4,)),
    ("nn.PixelShuffle(2)", (3, 3)),
    ("nn.PixelShuffle(0)", IMAGE),
    ("nn.PixelUnshuffle(2)", (2, 3, 5, 6)),
    ("nn.ChannelShuffle(3)", (2, 7, 3)),
    ("nn.ChannelShuffle(0)", (2, 6, 3)),
    ("nn.ChannelShuffle(1)", (2,)),
    ("nn.Unfold(9)", (2, 3, 5, 6)),
    ("nn.Unfold(2, stride=0)", (2, 3, 5, 6)),
    ("nn.Unfold(2)", (5, 6)),
    ("nn.Fold((5, 6), 2, dilation=0)", (2, 12, 20)),
    ("nn.MaxUnpool2d(2)", (1, 1, 2, 2), "torch.tensor([[[[0, 3], [9, 16]]]])"),
    ("nn.MultiMarginLoss(weight=torch.ones(4))", ROWS, CLASSES),
    ("nn.MultiMarginLoss()", ROWS, "torch.tensor([1, 0, 9, 2])"),
    ("nn.MultiLabelMarginLoss()", ROWS, "torch.full((4, 5), 5)"),
    *(
        (f"nn.Upsample(size=(5, 11), mode='{mode}', align_corners={align})", BYTES)
        for mode in ("bilinear", "bicubic") for align in (False, True)
    ),
    ("nn.Upsample(scale_factor=0.4, mode='bicubic')", BYTES),
    ("nn.Upsample(size=3, mode='bilinear')", "torch.ones(1, 1, 4, 4, dtype=torch.int64)"),
    (
        "nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)", (3, 2, 8), (3, 2, 8),
        (3, 2, 8), "None", "False", "torch.ones(3, 3).triu(1).bool()", "True", "True",
    ),
]  # fmt: skip


class Answers:
    """What a module that offers torch's API says to each case."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def data(self, *shape: int, seed: int = 0) -> Any:
        """Drawn from U(-2, 2)."""
        self.torch.manual_seed(seed)
        return self.torch.empty(shape, dtype=self.torch.float64).uniform_(-2, 2)

    def evaluated(self, text: str) -> Any:
        """The value of a text."""
        names = {"torch": self.torch, "nn": self.torch.nn, "data": self.data}
        return eval(text, names)

    def digest(self, tensor: Any) -> Any:
        """A tensor as its shape and three weighted sums."""
        if tensor is None:
            return None
        flat = tensor.detach().double().reshape(-1)
        place = self.torch.arange(flat.numel(), dtype=self.torch.float64)
        sums = [flat.sum(), (flat * (place + 1).sqrt()).sum(), (flat * flat).sum()]
        return [list(tensor.shape), *[each.item() for each in sums]]

    def case(self, text: str, *inputs: Any) -> dict[str, Any]:
        """The answer to one case."""
        self.torch.manual_seed(11)
        layer = self.evaluated(text)
        drawn = [[name, self.digest(each)] for name, each in layer.state_dict().items()]
        layer = layer.double()
        given = []
        for number, each in enumerate(inputs):
            is_text = isinstance(each, str)
            tensor = self.evaluated(each) if is_text else self.data(*each, seed=number)
            given.append(tensor if is_text else tensor.requires_grad_(True))
        self.torch.manual_seed(5)
        result = layer(*given)
        results = result if isinstance(result, tuple) else (result,)
        flat = [x for each in results for x in (each if isinstance(each, tuple) else (each,))]
        floats = [each for each in flat if each is not None and each.is_floating_point()]
        total = sum((each * self.data(*each.shape, seed=77)).sum() for each in floats)
        if getattr(total, "requires_grad", False):
            total.backward()
        return {
            "repr": repr(layer), "drawn": drawn, "results": [self.digest(x) for x in flat],
            "gradients": [self.digest(getattr(x, "grad", None)) for x in given],
            "of_parameters": [self.digest(x.grad) for x in layer.parameters()],
            "buffers": [self.digest(x) for x in layer.buffers()],
        }  # fmt: skip

    def all(self) -> dict[str, Any]:
        """Every case's answer, an error as its class and first line."""
        answers: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, case in enumerate(CASES):
                key = f"{number} {case[0]}"
                try:
                    answers[key] = self.case(*case)
                except Exception as error:
                    answers[key] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return answers
