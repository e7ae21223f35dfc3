"""What of torch must be other than it is while a program runs with a card that is not there; and changes to a program that a second
forecast tries, without touching its text."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from gpulint.forecasting.child.face import Outside
from gpulint.forecasting.child.tape import Tape
from gpulint.runtime.probes import hooks

_kept: list[Any] = []


def adapt(tape: Tape) -> None:
    """Change torch in this process."""
    FakeTensorMode.avoid_device_init = property(lambda self: True)
    torch._C._set_only_lift_cpu_tensors(True)  # `torch.tensor(…)` within a fake mode
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.utils.swap_tensors = _swap
    sys.modules["torch.optim.optimizer"]._foreach_supported_types.append(FakeTensor)
    _always_step()
    _plain_loaders()
    _write_nothing()
    _run_eagerly(tape)
    _host_generators()
    _whole_backwards()
    # Libraries ask whether a tensor is fake, by this name, and take it that they are traced: they would do otherwise than on a
    # card. torch itself knows the class by its own module.
    torch._subclasses.FakeTensor = type("FakeTensor", (), {})
    _one_process()


def _swap(one: Any, other: Any) -> None:
    """`Module.to` keeps the identity of its parameters by swapping; torch's own refuses where weak references are, which
    the tape and optimizers hold."""
    classes = one.__class__, other.__class__
    attributes = dict(one.__dict__), dict(other.__dict__)
    one.__class__, other.__class__ = classes[1], classes[0]
    one.__dict__.clear()
    one.__dict__.update(attributes[1])
    other.__dict__.clear()
    other.__dict__.update(attributes[0])
    torch._C._swap_tensor_impl(one, other)


def _always_step() -> None:
    """Gradients are never infinite here; a GradScaler asks."""

    def step(self: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    torch.amp.GradScaler._maybe_opt_step = step


def _plain_loaders() -> None:
    """Batches are made in this process: workers would start without the card, and pinning asks for it."""
    names = "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last"

    def made(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            kwargs.update(zip(names.split(), args, strict=False))
            kwargs["pin_memory"], kwargs["num_workers"] = False, 0
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context"):
                kwargs.pop(name, None)
            original(self, **kwargs)

        return __init__

    hooks.wrap(torch.utils.data.DataLoader, "__init__", made)


def _write_nothing() -> None:
    """A forecast must never write over a user's checkpoints with values that are none; what is saved is looked at, as
    pickling would, and nothing is written. What is loaded to the card is loaded to the host and moved."""

    def save(obj: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing."""

    load = torch.load

    @functools.wraps(load)
    def loaded(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        found = load(file, "cpu", *args, **kwargs)
        names_host = not callable(map_location) and "cpu" in str(map_location)
        return found if names_host else _to_card(found)

    torch.save = save
    torch.load = loaded
    with contextlib.suppress(ImportError):
        import safetensors.torch

        safetensors.torch.save_file = lambda *args, **kwargs: None


def _to_card(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("cuda")
    if isinstance(value, dict):
        return type(value)((key, _to_card(one)) for key, one in value.items())
    if type(value) in (list, tuple):
        return type(value)(map(_to_card, value))
    return value


def _host_generators() -> None:
    """A generator of random numbers for the card is made on the host; `moving` takes it out of the calls that draw there."""

    class Generator(torch._C.Generator):
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls)

        def __init__(self, device: Any = "cpu") -> None:
            self._named = torch.device(device)

        @property
        def device(self) -> torch.device:
            return self._named

    torch.Generator = Generator


def _whole_backwards() -> None:
    """These are one kernel on a card; a build without CUDA takes them apart, and so would the tape see their steps. No kernel is
    called: the fake mode answers before."""
    library = torch.library.Library("aten", "IMPL")
    for name in ("silu_backward", "mish_backward", "_fused_rms_norm", "_fused_rms_norm_backward"):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):
            library.impl(name, _never, "CUDA")
    _kept.append(library)


def _never(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("there is no card to run this on")


def _one_process() -> None:
    """Ranks wait for each other, and processes that are started have no card."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Outside(
            "training on several GPUs is outside of what a forecast covers, which runs one process with one card: start the"
            " script as on one GPU, without ranks"
        )

    for name in ("spawn", "start_processes"):
        setattr(torch.multiprocessing, name, refuse)
    if torch.distributed.is_available():
        torch.distributed.init_process_group = refuse
        sys.modules["torch.distributed.distributed_c10d"].init_process_group = refuse  # type: ignore[attr-defined]


def _run_eagerly(tape: Tape) -> None:
    """`torch.compile` gives back what it is given: a compiler has nothing to compile for."""

    def compile_(model: Any = None, **kwargs: Any) -> Any:
        tape.deciding.doubt("compile")
        return model if model is not None else lambda function: function

    def compile_module(self: Any, *args: Any, **kwargs: Any) -> None:
        tape.deciding.doubt("compile")

    torch.compile = compile_
    torch.nn.Module.compile = compile_module


# -- changes that are tried ----------------------------------------------------------------------------------------


def change(name: str) -> None:
    """Make the change of this name in this process; "" is none."""
    if name:
        _CHANGES[name]()


def _run_within(context: Callable[[Any], AbstractContextManager[Any]]) -> None:
    """Each module runs in the context that is made for it."""

    def made(original: Any) -> Any:
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            with context(module):
                return original(module, *args, **kwargs)

        return __call__

    hooks.wrap(torch.nn.Module, "__call__", made)


def _set_to_none() -> None:
    def made(original: Any) -> Any:
        return lambda self, *_, **__: original(self, set_to_none=True)

    for kind in (torch.optim.Optimizer, torch.nn.Module):
        hooks.wrap(kind, "zero_grad", made)


def _one_by_one(optimizer: Any) -> None:
    """Each parameter is updated by itself, where the optimizer leaves it open or takes them together."""
    for group in optimizer.param_groups:
        if "foreach" in group and not group.get("fused"):
            group["foreach"] = False


def _bf16() -> None:
    def context(_: Any) -> AbstractContextManager[Any]:
        return nullcontext() if torch.is_autocast_enabled("cuda") else torch.autocast("cuda", torch.bfloat16)

    _run_within(context)


def _checkpointing() -> None:
    """The blocks of a model that come several times run under `torch.utils.checkpoint`."""
    prepared: set[int] = set()

    def before(module: Any, *_: Any, **__: Any) -> None:
        if id(module) not in prepared:
            prepared.update(id(one) for one in module.modules())
            for block in _repeated(module):
                _checkpoint(block)

    hooks.around(torch.nn.Module, "__call__", before)


def _repeated(model: Any) -> list[Any]:
    """The members of the lists of modules in which at least three are of one class, outermost first."""
    found: list[Any] = []
    inside: set[int] = set()
    for module in model.modules():
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) or id(module) in inside:
            continue
        classes = [type(one) for one in module if any(one.children())]
        blocks = [one for one in module if classes.count(type(one)) >= 3]
        found += blocks
        inside.update(id(part) for one in blocks for part in one.modules())
    return found


def _checkpoint(block: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    forward = block.forward

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not (block.training and torch.is_grad_enabled()):
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = checkpointed


_CHANGES: dict[str, Callable[[], object]] = {
    "no_grad": lambda: _run_within(lambda module: nullcontext() if module.training else torch.no_grad()),
    "set_to_none": _set_to_none,
    "foreach": lambda: hooks.optimizers(steps=_one_by_one),
    "bf16": _bf16,
    "checkpointing": _checkpointing,
}
