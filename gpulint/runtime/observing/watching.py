"""torch's own events: optimizers, gradient scalers, data loaders; and which probe this machine calls for."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from collections.abc import Callable
from typing import Any

import torch

from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.result import INSTEAD, LIMITED


def has_cuda() -> bool:
    """Whether CUDA can be used, asked without initializing it: a process that has may not fork users of
    CUDA."""
    previous = os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK")
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    try:
        return torch.cuda.is_available()
    finally:
        if previous is None:
            del os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"]
        else:
            os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = previous


def make_probe(device: str, frames: Frames) -> Any:
    """The probe for `auto`, `cuda` or `cpu`."""
    if device == "cuda" or (device == "auto" and has_cuda()):
        from gpulint.runtime.probes.cuda import CudaProbe

        return CudaProbe(frames)
    from gpulint.runtime.probes.host import HostProbe

    return HostProbe(frames)


def watch_optimizers(
    made: Callable[[Any], None], steps: Callable[[], None], stepped: Callable[[Any], None]
) -> Callable[[], None]:
    """Call `made` for each new optimizer, `steps` before and `stepped` after each of its steps; returns what undoes it."""
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    before = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: steps())
    handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: stepped(optimizer))
    original = Optimizer.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made(self)

    Optimizer.__init__ = __init__  # type: ignore[method-assign]

    def undo() -> None:
        before.remove()
        handle.remove()
        Optimizer.__init__ = original  # type: ignore[method-assign]

    return undo


def watch_scalers(stepped: Callable[[Any], None]) -> Callable[[], None]:
    """Count a step that GradScaler skips (infinite gradients) as the step it would have been: the post hook
    does not fire."""
    try:
        from torch.amp.grad_scaler import GradScaler
    except ImportError:
        return lambda: None
    original = GradScaler._maybe_opt_step

    @functools.wraps(original)
    def _maybe_opt_step(self: Any, optimizer: Any, optimizer_state: Any, *args: Any, **kwargs: Any) -> Any:
        skipped = bool(sum(v.item() for v in optimizer_state["found_inf_per_device"].values()))
        out = original(self, optimizer, optimizer_state, *args, **kwargs)
        if skipped:
            stepped(optimizer)
        return out

    GradScaler._maybe_opt_step = _maybe_opt_step  # type: ignore[method-assign]

    def undo() -> None:
        GradScaler._maybe_opt_step = original  # type: ignore[method-assign]

    return undo


def why_no_cuda(limited: bool = False) -> str:
    """Why CUDA, which was asked for, cannot be used: one sentence with what to do. `limited` as in `Options`."""
    if torch.version.cuda is None:
        why = f"torch {torch.__version__} is a build without CUDA"
    else:
        why = f"torch {torch.__version__} finds no usable GPU or driver"
    if limited:
        return f"{LIMITED}, but {why}; run where a GPU is; {INSTEAD}"
    return (
        f"--device cuda was asked for, but {why}; leave it out to measure on the host, or run where a GPU is"
    )


def watch_replays(replayed: Callable[[Any], None]) -> Callable[[], None]:
    """Call `replayed` with each CUDA graph that has been replayed; returns what undoes it."""
    graph = getattr(torch.cuda, "CUDAGraph", None)
    original = getattr(graph, "replay", None)
    if graph is None or original is None:
        return lambda: None

    @functools.wraps(original)
    def replay(self: Any) -> None:
        original(self)
        replayed(self)

    graph.replay = replay
    return lambda: setattr(graph, "replay", original)


def watch_backwards(
    begins: Callable[[], None], ended: Callable[[], None], called: Callable[[], None]
) -> Callable[[], None]:
    """Call `begins` before each backward, `ended` after it, however it ended, and `called` where it went well; returns what
    undoes it."""
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> None:
        begins()
        try:
            original(*args, **kwargs)
        finally:
            ended()
        called()

    torch.autograd.backward = backward

    def undo() -> None:
        torch.autograd.backward = original

    return undo


def watch_gradients(called: Callable[[], None]) -> Callable[[], None]:
    """Call `called` after each `torch.autograd.grad`; returns what undoes it."""
    original = torch.autograd.grad

    @functools.wraps(original)
    def grad(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        called()
        return found

    torch.autograd.grad = grad

    def undo() -> None:
        torch.autograd.grad = original

    return undo


def watch_loaders(
    batch: Callable[[Any], bool], ended: Callable[[Any], None], loading: Callable[[int], None]
) -> Callable[[], None]:
    """Call `batch` with the iterator before each batch of a DataLoader, `ended` where it has no more or begins anew, and
    `loading` with +1 and -1 around a batch's making. Where `batch` says True, the epoch ends instead."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    original = _BaseDataLoaderIter.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if batch(self):
            raise StopIteration
        loading(1)
        try:
            return original(self)
        except StopIteration:
            ended(self)
            raise
        finally:
            loading(-1)

    anew = _BaseDataLoaderIter._reset

    @functools.wraps(anew)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        ended(self)
        anew(self, *args, **kwargs)

    _BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign]
    _BaseDataLoaderIter._reset = _reset  # type: ignore[method-assign]

    def undo() -> None:
        _BaseDataLoaderIter.__next__ = original  # type: ignore[method-assign]
        _BaseDataLoaderIter._reset = anew  # type: ignore[method-assign]

    return undo


def environment(probe: str) -> dict[str, Any]:
    """torch, device, driver and allocator, as `Environment` wants them."""
    found: dict[str, Any] = {"torch": torch.__version__, "probe": probe}
    if probe != "cuda-allocator":
        return {**found, "device": "cpu", "device_name": _processor()}
    found.update(device="cuda", cuda=torch.version.cuda)
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # asking would begin it, or crash where it failed to begin
        return found
    with contextlib.suppress(Exception):
        found["device_name"] = torch.cuda.get_device_name()
        found["driver"] = _driver()
        found["card"] = torch.cuda.current_device()
        found["contexts"] = _contexts()
        found["allocator_backend"] = torch.cuda.get_allocator_backend()
        found["allocator"] = _settings(torch.cuda.memory._snapshot().get("allocator_settings", {}))
    return found


def _contexts() -> tuple[int, ...]:
    """The cards on which this process has a context, as far as torch tells; asking makes none."""
    has = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    return tuple(card for card in range(torch.cuda.device_count()) if has(card)) if has is not None else ()


def _settings(settings: dict[str, Any]) -> str:
    """The allocator's settings that were asked for, as it read them back, and whether segments can expand."""
    asked = next((str(value) for key, value in settings.items() if key.endswith("ALLOC_CONF")), "")
    return ",".join(filter(None, [asked, f"expandable_segments:{settings.get('expandable_segments')}"]))


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _driver() -> str | None:
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as text:
        words = text.readline().split()
        for word in words:
            if word[0].isdigit() and "." in word:
                return word
    return None
