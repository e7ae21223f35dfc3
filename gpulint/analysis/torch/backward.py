"""Who goes backward: every call known to run a backward, or to differentiate a function that it is given, in one table.

Whatever says that no backward follows, that a fix may cut a graph, or that grad may be off asks here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class Through(Enum):
    """What a call goes backward through."""

    OBJECT = "its object"  # `loss.backward()`
    GIVEN = "what it is given"  # `torch.autograd.grad(loss, inputs)`, `accelerator.backward(loss)`
    FUNCTION = "a function, module or object that it is given"  # `jacobian(f, x)`, `HMC(model)`
    RERUN = (
        "a function that runs within a backward or runs one"  # `checkpoint(f, x)`, `optimizer.step(closure)`
    )
    TRAINING = "a module that it trains, or trains with"  # `Trainer(model)`
    LATER = "what somebody asks for later"  # `x.requires_grad_()`, a hook on gradients


@dataclass(frozen=True, slots=True)
class Api:
    """One way to go backward.

    `name` is a qualified name, or with a point before it a method's; one that ends in a point covers all that begins so.
    """

    name: str
    through: Through

    @property
    def is_method(self) -> bool:
        return self.name.startswith(".")

    @property
    def last(self) -> str:
        return self.name.rstrip(".").rpartition(".")[2]


def _apis(through: Through, names: str) -> tuple[Api, ...]:
    return tuple(Api(name, through) for name in names.split())


_TORCH = (
    *_apis(
        Through.GIVEN,
        "torch.autograd.backward torch.autograd.grad torch.distributed.autograd.backward",
    ),
    *_apis(
        Through.FUNCTION,
        "torch.autograd.functional. torch.autograd.gradcheck torch.autograd.gradgradcheck torch.autograd.gradcheck. "
        "torch.autograd.forward_ad. torch.func. torch.vmap torch.nn.utils.stateless.functional_call torch._functorch. "
        "torch.cuda.make_graphed_callables torch.distributed.autograd. torch.distributed.rpc. torch.distributed.optim. "
        "torch.distributed.nn.RemoteModule torch.distributed.nn.api. torch.distributed.pipelining. torch.distributed.pipeline.",
    ),
    *_apis(Through.RERUN, "torch.utils.checkpoint."),
)

# Methods, whatever their object: of tensors, and of the frameworks that go backward on the user's behalf.
_METHODS = (
    *_apis(Through.OBJECT, ".backward"),
    *_apis(
        Through.GIVEN,
        ".manual_backward .update_params .scaled_backward .optimizer_backward .clip_backward .scale_loss",
    ),
    *_apis(
        Through.FUNCTION,
        ".jacobian .hessian .vjp .jvp .vhp .hvp .jacrev .jacfwd .grad_and_value .functional_call .vmap "
        ".forward_backward_func .rpc_sync .rpc_async .forward_async .train_batch .attribute .optimize_acqf .gradcheck "
        ".gradgradcheck",
    ),
    *_apis(Through.RERUN, ".step"),
    *_apis(
        Through.LATER,
        ".requires_grad_ .retain_grad .register_hook .register_full_backward_hook .register_full_backward_pre_hook "
        ".register_backward_hook .register_post_accumulate_grad_hook .register_multi_grad_hook",
    ),
)

# Libraries, by how their qualified names begin, whose calls train, differentiate or sample by gradients.
_LIBRARIES = (
    *_apis(
        Through.FUNCTION,
        "functorch. captum. hamiltorch. pyro.infer. numpyro.infer. botorch.optim. botorch.fit. sbi.inference. sbi.samplers. "
        "higher. learn2learn. torchopt. betty. torchattacks. foolbox. art.attacks. advertorch. autoattack. cleverhans. "
        "torchdiffeq. torchsde. torchode. torchdyn. torchmin. shap. quantus. zennit. pytorch_grad_cam. torchcam. lucent. "
        "backpack. asdl. asdfghjkl. curvlinops. laplace. pyhessian.",
    ),
    *_apis(
        Through.TRAINING,
        "gpytorch.mlls. opacus. transformers.Trainer transformers.Seq2SeqTrainer transformers.trainer. trl. "
        "ignite.engine.create_supervised_trainer pytorch_lightning.Trainer lightning.Trainer lightning.pytorch.Trainer "
        "fairseq.trainer. mmengine.runner. mmcv.runner. composer.Trainer fastai. skorch. catalyst. torchgpipe. "
        "fairscale.nn.pipe. torch.optim.LBFGS",
    ),
    *_apis(Through.GIVEN, "apex.amp.scale_loss"),
)

APIS = (*_TORCH, *_METHODS, *_LIBRARIES)

_EXACT = {api.name: api for api in APIS if not api.is_method and not api.name.endswith(".")}
_PREFIXES = tuple((api.name, api) for api in APIS if api.name.endswith("."))
_BY_METHOD = {api.last: api for api in reversed(_METHODS)}

GRADIENTS = "torch.autograd.grad"

REMOTE = ("torch.distributed.rpc", "torch.distributed.autograd", "torch.distributed.pipelining")

_BACKWARD = re.compile(r"(?:^|_)backward(?:_|$)|^update_params$")
_NO_BACKWARD = re.compile(
    r"^(?:require|register|supports|check|is|has|can|on|set|before|after|pre|post)_|hook"
)

# The parts of torch that compute, move and tell; of any other part nothing is known.
_KNOWN_TORCH = frozenset(
    "nn cuda linalg fft special utils amp backends random distributions distributed jit hub onnx profiler sparse mps xpu cpu "
    "accelerator version testing quantization ao multiprocessing masked nested signal compiler Tensor autograd optim func".split()
)

# Words that only code has which wants gradients itself, or leaves them to somebody else.
WANTS_GRAD = frozenset(
    {api.last for api in _METHODS if api.through in (Through.FUNCTION, Through.LATER)} - {"attribute"}
) | frozenset({"enable_grad", "grad_fn", "create_graph", "dist_autograd"})


@lru_cache(4096)
def runs_backward(method: str) -> bool:
    """Whether a function of this name runs a backward through what it is given."""
    return bool(_BACKWARD.search(method)) and not _NO_BACKWARD.search(method)


def is_known_backward(method: str) -> bool:
    """Whether a method of this name is known to be given the very loss, and not whatever it is made of."""
    known = _BY_METHOD.get(method)
    return known is not None and known.through in (Through.OBJECT, Through.GIVEN)


@lru_cache(4096)  # of every call it is asked several times
def api_of(qualified: str | None) -> Api | None:
    """The entry for a qualified name."""
    if qualified is None:
        return None
    found = _EXACT.get(qualified)
    if found is not None:
        return found
    return next((api for start, api in _PREFIXES if qualified.startswith(start)), None)


def differentiates(qualified: str | None, method: str) -> bool:
    """Whether a call may go backward itself, or is there for gradients, by its qualified name or by its last."""
    found = api_of(qualified) or _BY_METHOD.get(method)
    return runs_backward(method) or (found is not None and found.through is not Through.RERUN)


def is_known_torch(qualified: str) -> bool:
    """Whether a name of torch's stands for what this table and the rest of the analysis know."""
    parts = qualified.split(".")
    return len(parts) == 2 or (len(parts) > 2 and parts[1] in _KNOWN_TORCH)


def takes_functions(qualified: str | None, method: str) -> bool:
    """Whether gradients may be asked of what a function gives that this call is given."""
    found = api_of(qualified) or _BY_METHOD.get(method)
    return found is not None and found.through in (Through.FUNCTION, Through.RERUN, Through.TRAINING)


def asks_for_gradients(api: Api | None) -> bool:
    return api is not None and api.through is Through.FUNCTION
