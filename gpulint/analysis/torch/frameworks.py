"""What libraries do on the user's behalf, as data."""

from __future__ import annotations

import re

# What asks a tensor for its array, which it refuses where it requires grad.
MAKES_ARRAYS = frozenset(f"numpy.{name}" for name in "array asarray asanyarray ascontiguousarray".split())

HOST_LIBRARIES = frozenset(
    (
        "numpy np math random scipy pandas sklearn matplotlib seaborn PIL cv2 json os sys time datetime "
        "statistics itertools logging re pathlib shutil subprocess yaml pickle csv argparse collections "
        "functools string nltk evaluate sacrebleu skimage neptune wandb comet_ml mlflow clearml aim tensorboardX "
        "swanlab visdom sacred"
    ).split()
)

# Functions of libraries that give a tensor with the graph of the tensor that they are given.
GRAPH_KEEPING = frozenset(
    [
        "horovod.torch.allreduce",
        "horovod.torch.allgather",
        "horovod.torch.broadcast",
        "horovod.torch.allreduce_",
        "einops.rearrange",
        "einops.reduce",
        "einops.repeat",
        "einops.einsum",
    ]
)

# Functions that draw or write tensors, under no_grad by themselves. The grid is a tensor, without graph.
DRAWING = frozenset(
    [
        "torchvision.utils.save_image",
        "torchvision.utils.make_grid",
        "torchvision.transforms.functional.to_pil_image",
    ]
)

# Methods of a module, of unknown class, that run a forward and give tensors.
FORWARD_METHODS = frozenset(
    (
        "forward encode decode encoder decoder get_image_features get_text_features encode_image encode_text "
        "forward_features extract_features features embed get_features extract_feat log_prob"
    ).split()
)

# Those that the libraries that have them leave under the caller's grad mode.
UNGUARDED_METHODS = frozenset(
    "encode_image encode_text get_image_features get_text_features forward_features extract_features".split()
)

# Submodules by their usual names: calling one of a known model runs a forward.
SUBMODULES = frozenset(
    "encoder decoder backbone feature_extractor features trunk body stem transformer bert roberta".split()
)

# Methods of well-known modules that run under no_grad by themselves.
NO_GRAD_METHODS = frozenset(["generate", "sample"])

# Calls of loggers and meters, by method name, of objects whose class is not seen, that are known to convert.
SINKS = frozenset(["log", "log_dict", "log_scalars", "scalar", "add_metric", "track", "report"])

# Hooks of a LightningModule that the framework runs without grad, and those it runs in training.
LIGHTNING_NO_GRAD = frozenset(
    (
        "validation_step test_step predict_step on_validation_epoch_end on_test_epoch_end "
        "on_validation_batch_end on_test_batch_end validation_epoch_end test_epoch_end validation_step_end "
        "test_step_end on_validation_epoch_start on_validation_start on_validation_end on_test_start "
        "on_test_end on_predict_start on_predict_end on_predict_epoch_end on_validation_batch_start "
        "on_test_epoch_start"
    ).split()
)
LIGHTNING_TRAIN = frozenset({"training_step"})

# Methods that subclasses of these trainers run without grad, by the framework's own guard.
HF_TRAINER_NO_GRAD = frozenset({"prediction_step", "prediction_loop", "evaluation_loop", "compute_metrics"})

# Methods of transformers.Trainer that keep what they are given, and where.
HF_TRAINER_KEEPS = {"log": "state.log_history"}

# What of Lightning's trainer keeps the last few numbers it is given, without their graphs, by its path behind the trainer.
LIGHTNING_WINDOWS = frozenset(
    f"{loop}.{kept}"
    for loop in ("train_loop", "fit_loop", "fit_loop.epoch_loop.batch_loop", "fit_loop.epoch_loop")
    for kept in ("running_loss", "accumulated_loss")
)

# Hooks that a framework calls once per batch.
PER_BATCH_HOOKS = frozenset(
    {"training_step", "validation_step", "test_step", "predict_step", "compute_loss", "prediction_step"}
)
# Those of them after which the framework goes backward.
# How many micro-batches make one step, as DeepSpeed's engine, Accelerate and transformers call it.
MICRO_BATCHES = frozenset({"gradient_accumulation_steps"})

# The two halves of a metric that is driven from outside: what is called with each batch, and what ends it.
METRIC_HALVES = {
    "process": frozenset({"compute_metrics"}),
    "update": frozenset({"compute"}),
    "update_state": frozenset({"result"}),
    "add_batch": frozenset({"compute"}),
}

_MODULE_FACTORIES = (
    "torchvision.models.", "timm.create_model", "timm.models.", "segmentation_models_pytorch.", "monai.networks.nets.",
    "efficientnet_pytorch.", "open_clip.create_model", "resnet.", "pretrainedmodels.", "whisper.load_model",
    "facenet_pytorch.InceptionResnetV1", "lpips.LPIPS", "pytorch_fid.inception.InceptionV3", "inception.InceptionV3", "torch_geometric.nn.", "s3prl.", "torchaudio.models.",
)  # fmt: skip

# Methods that a class of the project has from a framework, and that make an object of it with its weights.
INHERITED_LOADERS = frozenset({"load_from_checkpoint", "from_pretrained"})

# Libraries whose modules have buffers at most: what they give has a graph only where what they are given has one.
WEIGHTLESS_MAKERS = (
    "torchaudio.transforms.", "torchvision.transforms.", "kornia.augmentation.", "kornia.color.", "kornia.enhance.",
    "kornia.filters.", "kornia.geometry.", "kornia.morphology.", "pytorch_msssim.", "torch_audiomentations.", "pytorch_wavelets.",
)  # fmt: skip

# Bases that bring no parameter along, by their last names.
PLAIN_BASES = frozenset("object Module ScriptModule LightningModule ABC Generic Protocol".split())

# Networks of libraries that their constructors freeze, and the argument that keeps them from it.
FROZEN_MAKERS = {"pytorch_fid.inception.InceptionV3": "requires_grad"}

# Objects of libraries that average the weights of a network in a copy, which they freeze: where they have it.
FROZEN_PARTS = {
    "diffusers.training_utils.EMAModel": ("averaged_model",),
    "diffusers.EMAModel": ("averaged_model",),
    "ema_pytorch.EMA": ("ema_model",),
    "timm.utils.ModelEma": ("ema",),
    "timm.utils.model_ema.ModelEma": ("ema",),
    "ultralytics.utils.torch_utils.ModelEMA": ("ema",),
    "yolox.utils.ModelEMA": ("ema",),
}

# Those of which only a small part is not frozen: what that saves, the forward has at hand anyway.
MOSTLY_FROZEN = {"lpips.LPIPS": "the backbone of `lpips.LPIPS` is frozen, and its layers behind it are small"}

# Modules that are not seen, and are called as one of those that freeze their parameters.
MAYBE_FROZEN = {
    "inception.InceptionV3": "`inception.InceptionV3` may be pytorch-fid's, which freezes its parameters"
}

# Functions of libraries that give a module first, and other things after it: how many things, the module included.
_MODULE_FIRST = {
    "clip.load": 2,
    "clip.clip.load": 2,
    "lavis.models.load_model_and_preprocess": 3,
    "open_clip.create_model_and_transforms": 3,
    "open_clip.create_model_from_pretrained": 2,
    "esm.pretrained.": 2,
    "cn_clip.clip.load_from_name": 2,
}

# The same where a list of modules comes first.
_MODULES_FIRST = {
    "fairseq.checkpoint_utils.load_model_ensemble_and_task": 3,
    "fairseq.checkpoint_utils.load_model_ensemble": 2,
}

_OPTIMIZERS = (
    "transformers.AdamW", "transformers.Adafactor", "apex.optimizers.", "timm.optim.create_optimizer", "bitsandbytes.optim.",
    "torch_optimizer.", "lion_pytorch.Lion",
)  # fmt: skip


# Methods of a model that run a forward and give a tensor, whatever its class.
SURE_FORWARDS = frozenset(
    (
        "encode_image encode_text get_image_features get_text_features forward_features extract_features "
        "extract_feat extract_feature"
    ).split()
)


def constructor(qualified: str) -> str | None:
    """What calling a third-party name makes: "module", "optimizer", "loader", or None."""
    last = qualified.rsplit(".", 1)[-1]
    if qualified.startswith("torchvision.models.") and last[:1].islower() and "weights" not in last:
        return "module"
    if qualified.startswith(_MODULE_FACTORIES[1:]):
        return "module"
    if qualified.startswith(_OPTIMIZERS):
        return "optimizer"
    if qualified.startswith("transformers.") and last in ("from_pretrained", "from_config"):
        owner = qualified.split(".")[-2]
        return (
            "module"
            if "Model" in owner or (_IS_MODEL.search(owner) is not None and not _not_a_model(owner))
            else None
        )
    if qualified.startswith("apex.parallel.DistributedDataParallel"):
        return "wrap"
    if last == "DataLoader":
        return "loader"
    if qualified == "transformers.pipeline":
        return "host"  # runs its model without grad, and gives texts and numbers
    return None


def parts(qualified: str) -> tuple[int, bool] | None:
    """For a function whose first result is a module: how many results it gives, and whether the first is a list."""
    if qualified in _MODULES_FIRST:
        return _MODULES_FIRST[qualified], True
    for name, count in _MODULE_FIRST.items():
        if qualified == name or (name.endswith(".") and qualified.startswith(name)):
            return count, False
    return None


# `AutoSomething`, `BertForMaskedLM`, `GPT2LMHeadModel`.
_IS_MODEL = re.compile(r"^Auto|For[A-Z]\w*$")


def _not_a_model(owner: str) -> bool:
    return any(word in owner for word in ("Tokenizer", "Config", "Processor", "Extractor"))


# Names of base classes, by their last part, that make a class an nn.Module.
MODULE_BASES = frozenset(
    (
        "Module LightningModule PreTrainedModel Sequential ModuleList BaseModule FairseqEncoder "
        "FairseqDecoder BaseFairseqModel ModelMixin TorchModel TorchModelV2 TransformerEncoderLayer "
        "MessagePassing"
    ).split()
)

# Functions of libraries that say whether an exception is about running out of memory.
OOM_QUESTIONS = frozenset(
    {"accelerate.utils.memory.should_reduce_batch_size", "accelerate.utils.should_reduce_batch_size"}
)

# Libraries of which no decorator and no context manager knows of torch's grad mode.
NEUTRAL_LIBRARIES = frozenset(
    (
        "streamlit fastapi flask celery gin draccus pyrallis hydra argbind pydantic zenml metaflow dagster prefect bentoml "
        "kfp codecarbon loguru sacred ray modal spaces chainlit gradio typer click lmdb gym gymnasium imageio safetensors "
        "smart_open filelock alive_progress webdataset soundfile sounddevice mss mediapipe threadpoolctl tables netCDF4 "
        "sqlite3 xarray requests httpx aiohttp pyarrow opentelemetry cProfile h5py zipfile tarfile wave rasterio sqlalchemy "
        "tempfile threading multiprocessing tqdm rich kaldiio av decord"
    ).split()
)

# Context managers of libraries, by qualified name, that leave grad mode alone.
NEUTRAL_CALLS = frozenset(
    {
        "torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.cuda.device", "torch.cuda.stream", "torch.device",
        "torch.profiler.profile", "torch.autograd.profiler.profile", "torch.autograd.detect_anomaly",
        "torch.autograd.set_detect_anomaly", "torch.cuda.nvtx.range", "torch.random.fork_rng", "contextlib.suppress",
        "contextlib.nullcontext", "contextlib.ExitStack", "warnings.catch_warnings", "torch.nn.attention.sdpa_kernel",
        "torch.backends.cuda.sdp_kernel", "torch.autograd.graph.save_on_cpu", "torch.autograd.graph.saved_tensors_hooks",
        "tempfile.TemporaryDirectory", "concurrent.futures.ThreadPoolExecutor", "mlflow.start_run",
    }
)  # fmt: skip
