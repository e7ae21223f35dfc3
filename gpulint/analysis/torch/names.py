"""Import aliases → qualified names, and what the torch names that matter do to a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Tensor methods and torch functions that give a Python value, so nothing of the tensor stays.
TO_HOST = frozenset(
    (
        "item tolist numpy size dim ndimension numel nelement stride storage_offset element_size data_ptr "
        "get_device is_contiguous is_floating_point is_complex is_cuda is_leaf is_tensor type_as_string equal "
        "allclose"
    ).split()
)

# What makes one tensor of many.
JOINS = frozenset("cat concat concatenate stack vstack hstack dstack column_stack pad_sequence".split())

# Attributes of a tensor that are Python values.
HOST_ATTRS = frozenset(
    (
        "shape device dtype ndim requires_grad is_leaf is_cuda is_sparse layout names itemsize nbytes "
        "grad_fn_name"
    ).split()
)


# Attributes of a tensor that are tensors with its graph, and what a pair, as `max` gives it, has of one.
TENSOR_FIELDS = frozenset("T mT H real imag values".split())

# Fields of a model's output that are one large tensor, whoever is given the output.
OUTPUT_TENSORS = frozenset({"logits", "last_hidden_state", "pooler_output"})

OUTPUT_FIELDS = OUTPUT_TENSORS | {"loss", "hidden_states", "sample", "prediction"}

# Results carry no graph even with grad enabled: integers, booleans, fresh tensors, explicit detaches.
TO_DEVICE = frozenset(
    (
        "detach argmax argmin argsort argwhere nonzero long int bool byte short char eq ne lt le gt ge isnan "
        "isinf isfinite isclose logical_and logical_or logical_not logical_xor any all multinomial bernoulli "
        "count_nonzero bincount histc unique unique_consecutive searchsorted bucketize one_hot randint "
        "randperm arange zeros_like ones_like rand_like randn_like randint_like empty_like full_like "
        "new_zeros new_ones new_empty new_full new_tensor zeros ones rand randn empty full eye linspace "
        "tensor as_tensor from_numpy greater less greater_equal less_equal not_equal isin is_nonzero"
    ).split()
)

# With a dimension these give (values, indices); the indices carry no graph.
PAIRS = frozenset("max min topk sort kthvalue median mode nanmedian cummax cummin aminmax".split())

# Reductions: the result is small.
REDUCTIONS = frozenset("mean sum norm prod std var logsumexp nansum nanmean amax amin dist".split())

# Graph-keeping tensor methods and functions. Anything else called on a value with a graph is unknown.
KEEPS_GRAPH = frozenset(
    (
        "cpu cuda to clone contiguous float half double bfloat16 type type_as view reshape view_as reshape_as "
        "flatten unflatten squeeze unsqueeze squeeze_ unsqueeze_ permute transpose transpose_ t T mT swapaxes "
        "movedim expand expand_as repeat repeat_interleave tile split chunk unbind index_select gather "
        "scatter scatter_add masked_fill masked_fill_ masked_select take take_along_dim narrow select slice "
        "diagonal diag tril triu roll flip rot90 unfold fold cat concat concatenate stack hstack vstack "
        "dstack column_stack add add_ sub sub_ subtract mul mul_ multiply div div_ divide true_divide pow "
        "pow_ sqrt rsqrt square exp expm1 log log2 log10 log1p abs absolute neg negative reciprocal sin cos "
        "tan tanh sinh cosh atan asin acos atan2 sigmoid softmax log_softmax logit relu relu_ gelu silu elu "
        "leaky_relu selu softplus hardtanh clamp clamp_ clamp_min clamp_max clip ceil floor round trunc frac "
        "sign fmod remainder lerp lerp_ addcmul addcdiv addmm addmv baddbmm bmm mm matmul mv dot inner outer "
        "einsum tensordot cross kron cumsum cumprod maximum minimum fmax fmin where requires_grad_ "
        "retain_grad normalize dropout linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d interpolate upsample "
        "grid_sample affine_grid pad pixel_shuffle batch_norm layer_norm group_norm instance_norm embedding "
        "cosine_similarity pairwise_distance cdist scaled_dot_product_attention glu prelu nan_to_num real "
        "imag view_as_real view_as_complex fft ifft rfft irfft stft istft pin_memory cumulative_trapezoid "
        "trapz broadcast_to erf erfc lgamma digamma xlogy logaddexp hypot det logdet slogdet inverse cholesky "
        "solve pinverse svd qr eig requires_grad copy_ sum_to_size diff index_add index_copy index_put "
        "masked_scatter scatter_reduce meshgrid atleast_1d atleast_2d quantile data_parallel record_stream "
        "as_strided swapdims ravel nanquantile"
    ).split()
)

# Modules of torch.nn without parameters: what they save for a backward, they save only where their input has a graph.
_PLAIN_MODULES = re.compile(
    r"(?:Adaptive|Fractional|LP)?(?:Max|Avg)?(?:Unp|P)ool[123]d|(?:Alpha|Feature)*Dropout[123]?d?"
    r"|(?:Zero|Constant|Reflection|Replication|Circular)Pad[123]d|(?:Leaky|R)?ReLU6?|[GSC]?ELU|GELU|SiLU|Mish|GLU"
    r"|(?:Log|Hard)?[Ss]igmoid|Hard(?:swish|tanh|shrink)|(?:Tanh|Soft)shrink|Tanh|Soft(?:max|min|max2d|plus|sign)"
    r"|LogSoftmax|Threshold|Identity|Flatten|Unflatten|Upsample|Upsampling(?:Nearest|Bilinear)2d"
    r"|Pixel(?:Uns|S)huffle|ChannelShuffle|Fold|Unfold|CosineSimilarity|PairwiseDistance"
)


def is_plain_module(name: str) -> bool:
    """Whether a class of torch.nn, by its last name, has no parameters."""
    return _PLAIN_MODULES.fullmatch(name) is not None


LOSS_SUFFIXES = (
    "_loss",
    "cross_entropy",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
)

# Calls and containers that only read numbers off what they are given.
NUMERIC_SINKS = frozenset("print float int str repr round len format bool isinstance type hasattr id".split())

# Methods, on whatever object, that take values without keeping a graph: loggers, progress bars, writers.
SINK_METHODS = frozenset(
    (
        "add_scalar add_scalars add_image add_images add_histogram add_text add_figure log_metric log_metrics "
        "log_scalar set_postfix set_description set_postfix_str set_description_str info debug warning error "
        "critical write writelines format add_embedding add_graph flush set_description_ report_scalar"
    ).split()
)

NO_GRAD = frozenset(
    {
        "torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode",
        "torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode", "lightning.pytorch.utilities.inference_mode",
    }
)  # fmt: skip
ENABLE_GRAD = frozenset(
    {"torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad"}
)
SET_GRAD = frozenset(
    {
        "torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled",
        "torch._C.set_grad_enabled", "torch._C._set_grad_enabled",
    }
)  # fmt: skip

# What a program calls that measures its own memory.
# The last names by which a function's text says that it sets the grad mode.
GRAD_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})

# Context managers whatever their owner that leave grad mode alone.
NEUTRAL_CONTEXTS = frozenset(
    (
        "autocast no_sync no_backward_sync maybe_no_sync accumulate open tqdm trange record_function profile emit_nvtx emit_itt stream "
        "device nullcontext suppress catch_warnings timer Timer time_block range scope name_scope lock Lock "
        "Pool ThreadPool ThreadPoolExecutor ProcessPoolExecutor Session join fork_rng sdpa_kernel "
        "set_default_dtype TemporaryDirectory NamedTemporaryFile closing redirect_stdout redirect_stderr "
        "ExitStack SummaryWriter EventStorage init_on_device autocast_context detect_anomaly "
        "set_detect_anomaly anomaly_mode patch get_context progress Progress Live status main_process_first "
        "local_main_process_first torch_distributed_zero_first start_run timeit time perf_timer ProgressBar "
        "progress_bar cuda_sync_timer sdp_kernel loss_parallel measure nvtx_range annotate memory_profiler "
        "graph autocast_ctx amp_autocast amp_context amp_ctx precision_context StringIO BytesIO ZipFile File "
        "db_session raises warns"
    ).split()
)


class Names:
    """What the names a module imports stand for."""

    __slots__ = ("imports",)

    def __init__(self, imports: Mapping[str, str]) -> None:
        # `from fastai.vision.all import *` brings `torch` along.
        starred = "torch" not in imports and any(name.startswith("*") for name in imports)
        self.imports = {**imports, "torch": "torch"} if starred else imports

    def qualify(self, path: str) -> str | None:
        """The qualified name of a dotted path whose first part is imported, else None.

        `F.relu` → `torch.nn.functional.relu` after `import torch.nn.functional as F`.
        """
        head, _, rest = path.partition(".")
        full = self.imports.get(head)
        if full is None:
            return None
        return canonical(f"{full}.{rest}" if rest else full)


_SAME = (
    ("lightning.pytorch.", "pytorch_lightning."),
    ("lightning.fabric.", "lightning_fabric."),
    ("torch.functional.", "torch."),
    ("torch.nn.modules.loss.", "torch.nn."),
    ("torch.amp.autocast_mode.", "torch.amp."),
)


def canonical(name: str) -> str:
    """One spelling for names that torch and Lightning export from several places."""
    for old, new in _SAME:
        if name.startswith(old):
            return new + name[len(old) :]
    if name.startswith("lightning.") and name.count(".") == 1:
        return "pytorch_" + name
    return name


def is_loss_function(qualified: str) -> bool:
    """Whether a torch function or class computes a loss: `torch.nn.functional.mse_loss`, `torch.nn.NLLLoss`."""
    last = qualified.rsplit(".", 1)[-1]
    return last.endswith("Loss") or last.endswith(LOSS_SUFFIXES)


# Losses that save for their backward what they make of their input, and those that save the input itself.
SAVES_SOFTMAX: Final = frozenset({"CrossEntropyLoss", "cross_entropy"})
SAVES_INPUT: Final = frozenset(
    "NLLLoss nll_loss BCEWithLogitsLoss binary_cross_entropy_with_logits BCELoss binary_cross_entropy MSELoss mse_loss "
    "L1Loss l1_loss SmoothL1Loss smooth_l1_loss".split()
)
