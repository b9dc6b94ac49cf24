"""torch.nn.modules: where each layer lives.

Keeps     the table is all that is read at import.
Touches   the files beside it, lazily.
Not here  any logic."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name

FILES: dict[str, tuple[str, ...]] = {
    "module": ("Module",),
    "container": (
        "Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential",
    ),
    "linear": ("Bilinear", "Identity", "Linear"),
    "activation": (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
        "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU",
        "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
        "Tanh", "Tanhshrink", "Threshold",
    ),
    "adaptive": ("AdaptiveLogSoftmaxWithLoss",),
    "attention": ("MultiheadAttention",),
    "loss": (
        "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
        "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
        "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
        "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
        "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    ),
    "dropout": (
        "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    ),
    "normalization": ("GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"),
    "batchnorm": ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"),
    "instancenorm": ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
    "sparse": ("Embedding", "EmbeddingBag"),
    "conv": (
        "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    ),
    "pooling": (
        "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
        "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
        "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    ),
    "padding": (
        "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
        "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
        "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
        "ZeroPad3d",
    ),
    "rnn": ("GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"),
    "transformer": (
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
    "upsampling": ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"),
    "flatten": ("Flatten", "Unflatten"),
    "fold": ("Fold", "Unfold"),
    "distance": ("CosineSimilarity", "PairwiseDistance"),
    "pixelshuffle": ("PixelShuffle", "PixelUnshuffle"),
    "channelshuffle": ("ChannelShuffle",),
    "lazy": (
        "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
        "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
        "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    ),
}  # fmt: skip
WHERE = {name: file for file, names in FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in FILES or name == "utils":
        return import_module(f"flambeau.nn.modules.{name}")
    file = WHERE.get(name)
    if file is None:
        raise missing_name(__name__, name, WHERE)
    try:
        found = getattr(import_module(f"flambeau.nn.modules.{file}"), name)
    except (ModuleNotFoundError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != f"flambeau.nn.modules.{file}":
            raise
        raise missing_name(__name__, name, WHERE) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(WHERE)
