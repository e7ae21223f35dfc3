"""How many weights layers and well-known models have. Figures of models are in millions, rounded, as their papers and
torchvision's documentation give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_MILLION: Final = 1_000_000
# torchvision's and timm's models by the beginnings of their names, the longest that fits decides.
_BACKBONES: Final = {
    "alexnet": 61, "convnext": 28, "convnext_base": 88, "convnext_large": 197, "deeplabv3_resnet101": 61,
    "deeplabv3_resnet50": 42, "deit_base": 86, "deit_small": 22, "deit_tiny": 6, "densenet": 8, "densenet161": 28,
    "densenet201": 20, "efficientnet": 5, "efficientnet_b4": 19, "efficientnet_b5": 30, "efficientnet_b6": 43,
    "efficientnet_b7": 66, "efficientnet_v2_l": 118, "efficientnet_v2_m": 54, "efficientnet_v2_s": 21,
    "fasterrcnn_mobilenet": 19, "fasterrcnn_resnet50": 41, "fcn_resnet101": 54, "fcn_resnet50": 35, "googlenet": 6,
    "inception_v3": 27, "keypointrcnn": 59, "lraspp": 3, "maskrcnn": 44, "mnasnet": 2, "mobilenet": 3, "r2plus1d_18": 31,
    "r3d_18": 33, "regnet": 4, "resnet101": 44, "resnet152": 60, "resnet18": 11, "resnet34": 21, "resnet50": 25,
    "resnext101": 83, "resnext50": 25, "retinanet": 34, "shufflenet": 1, "squeezenet": 1, "ssd300": 35, "swin_b": 88,
    "swin_l": 197, "swin_s": 50, "swin_t": 28, "vgg": 133, "vit_b": 86, "vit_h": 632, "vit_l": 304, "wide_resnet101": 126,
    "wide_resnet50": 68, "vit_small": 22, "vit_tiny": 6,
}  # fmt: skip
# What loads weights that others have trained: transformers' and diffusers' have some hundred millions as a rule.
_PRETRAINED: Final = 100
_LIBRARIES: Final = re.compile(r"^(?:transformers|diffusers|sentence_transformers|clip|open_clip)\.")
_LOADERS: Final = re.compile(
    r"^(?:clip\.(?:clip\.)?load|open_clip\.create_model\w*|whisper\.load_model|fairseq\.checkpoint_utils\.load_model_ensemble\w*)$"
)
VOCABULARY: Final = 50_000  # rows of a table whose number is not known
LEAST_VOCABULARY: Final = 5_000  # scores in a row; networks that classify have 1,000 as a rule
NAMES_OF_VOCABULARIES: Final = re.compile(r"(?i)vocab|n_?tok|num_tok|n_?char|num_char|n_?symbols")
_LAYERS_OF_RECURRENT: Final = 2  # where their number is not known
_LAYERS_IN_ONE: Final = {"LSTM": 4, "LSTMCell": 4, "GRU": 3, "GRUCell": 3, "RNN": 1, "RNNCell": 1}

# Classes of libraries that have no weights, by the beginnings of their qualified names.
_WEIGHTLESS: Final = re.compile(
    r"^(?:torch|numpy|collections|functools|math|einops\.layers\.torch\.Rearrange|einops\.layers\.torch\.Reduce"
    r"|torchvision\.(?:transforms|datasets|ops\.(?:RoIAlign|RoIPool|StochasticDepth|DropBlock2d))|torchaudio\.transforms"
    r"|timm\.(?:models\.)?layers\.(?:\w+\.)?(?:DropPath|DropBlock2d|StdConv2d)|pathlib|typing|easydict|argparse|abc|enum)\b"
)

Dimension = Callable[[int, str, "int | None"], int]


# The convolutions alone of models that have most of their weights behind them, in millions.
_FEATURES: Final = {"alexnet": 2, "vgg11": 9, "vgg13": 9, "vgg16": 15, "vgg19": 20, "squeezenet": 1}


def of_features(model: str) -> int | None:
    """The weights of `vgg16().features`; None where these are nearly all that the model has."""
    fitting = [known for known in _FEATURES if model.lower().startswith(known)]
    return _FEATURES[max(fitting, key=len)] * _MILLION if fitting else None


def is_weightless(qualified: str) -> bool:
    """Whether an object of a library's class is known to bring no weights; of torch's own layers `of_layer` tells."""
    return _WEIGHTLESS.match(qualified) is not None


def of_model(qualified: str, name: str | None = None) -> int | None:
    """The weights of a well-known model: `torchvision.models.resnet50`, `timm.create_model("resnet50")`, with the `name` that
    it is given, `AutoModel.from_pretrained`. None for anything else."""
    last = qualified.rpartition(".")[2]
    if qualified.startswith("torchvision.models."):
        return _of_backbone(last)
    if qualified.startswith("timm.") and last == "create_model":
        return _of_backbone(name) if name is not None else None
    if _LOADERS.match(qualified):
        return _PRETRAINED * _MILLION
    if _LIBRARIES.match(qualified) and last == "from_pretrained":
        owner = qualified.split(".")[-2]
        hosted = ("Tokenizer", "Processor", "Config", "Extractor", "Scheduler")
        return None if owner.endswith(hosted) else _PRETRAINED * _MILLION
    return None


def of_name(name: str) -> int | None:
    """The weights of the well-known model that a network is called after: `maskRCNN`, `self.vgg`. None for anything else."""
    return _of_backbone(name.rpartition(".")[2])


def _of_backbone(name: str) -> int | None:
    fitting = [known for known in _BACKBONES if name.lower().startswith(known)]
    return _BACKBONES[max(fitting, key=len)] * _MILLION if fitting else None


def of_layer(name: str, positional: Sequence[object], keywords: Mapping[str, object], unknown: int) -> int:
    """The weights of one of torch.nn's layers. What is not known of its arguments counts as `unknown`."""

    def size(position: int, keyword: str, default: int | None = None) -> int:
        value = positional[position] if position < len(positional) else keywords.get(keyword, default)
        return _number(value, unknown)

    if name == "Linear":
        return (size(0, "in_features") + 1) * size(1, "out_features")
    if name == "Bilinear":
        return size(0, "in1_features") * size(1, "in2_features") * size(2, "out_features")
    if name.startswith("Conv") and name[-1] == "d":
        return _of_convolution(name, positional, keywords, size, unknown)
    if name in ("Embedding", "EmbeddingBag"):
        rows = positional[0] if positional else keywords.get("num_embeddings")
        return _number(rows, unknown if unknown == 1 else VOCABULARY) * size(1, "embedding_dim")
    if name in _LAYERS_IN_ONE:
        return _of_recurrent(name, positional, keywords, size)
    if name == "MultiheadAttention":
        return 4 * size(0, "embed_dim") ** 2
    if name in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        width = size(0, "d_model")
        return (4 if "Encoder" in name else 8) * width**2 + 2 * width * size(2, "dim_feedforward", 2048)
    if name == "Transformer":
        width = size(0, "d_model", 512)
        layers = 4 * size(2, "num_encoder_layers", 6) + 8 * size(3, "num_decoder_layers", 6)
        return layers * width**2 + 24 * width * size(4, "dim_feedforward", 2048)
    return 0


def _of_convolution(
    name: str, positional: Sequence[object], keywords: Mapping[str, object], size: Dimension, unknown: int
) -> int:
    side_unknown = min(3, unknown)
    field = positional[2] if len(positional) > 2 else keywords.get("kernel_size", 3)
    if isinstance(field, (list, tuple)):
        extent = 1
        for side in field:
            extent *= _number(side, side_unknown)
    else:
        extent = _number(field, side_unknown) ** int(name[-2]) if name[-2].isdigit() else 1
    groups = max(1, size(7 if "Transpose" in name else 6, "groups", 1))
    return size(0, "in_channels", None) * size(1, "out_channels", None) * extent // groups


def _of_recurrent(
    name: str, positional: Sequence[object], keywords: Mapping[str, object], size: Dimension
) -> int:
    given, hidden = size(0, "input_size", None), size(1, "hidden_size", None)
    known = positional[2] if len(positional) > 2 else keywords.get("num_layers", 1)
    layers = 1 if name.endswith("Cell") else max(1, _number(known, _LAYERS_OF_RECURRENT))
    ways = 2 if keywords.get("bidirectional") is True else 1
    first = hidden * (given + hidden)
    return _LAYERS_IN_ONE[name] * ways * (first + (layers - 1) * hidden * (ways * hidden + hidden))


def _number(value: object, unknown: int) -> int:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if known else unknown  # type: ignore[call-overload]
