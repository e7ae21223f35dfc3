"""Which probe this machine calls for, and what a report says of it."""

from __future__ import annotations

import contextlib
import platform
from typing import Any

import torch

from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.peaks import CardUse
from gpulint.runtime.record.result import INSTEAD, LIMITED


def has_cuda() -> bool:
    """Whether CUDA can be used, asked without initializing it, as `torch.cuda.is_available` may: a process that has may not fork
    users of CUDA."""
    return torch.cuda.device_count() > 0


def make_probe(device: str, frames: Frames) -> Any:
    """The probe for `auto`, `cuda` or `cpu`."""
    if device == "cuda" or (device == "auto" and has_cuda()):
        from gpulint.runtime.probes.cuda import CudaProbe

        return CudaProbe(frames)
    from gpulint.runtime.probes.host import HostProbe

    return HostProbe(frames)


def no_gpu() -> str:
    """Why there is none, as part of a sentence."""
    for_gpus = torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None
    why = "finds no usable GPU or driver" if for_gpus else "is a build without CUDA"
    return f"torch {torch.__version__} {why}"


def why_no_cuda(limited: bool = False) -> str:
    """Why CUDA, which was asked for, cannot be used: one sentence with what to do. `limited` as in `Options`."""
    why = no_gpu()
    if limited:
        return f"{LIMITED}, but {why}; run where a GPU is; {INSTEAD}"
    otherwise = "leave it out to measure on the host, or run where a GPU is"
    return f"--device cuda was asked for, but {why}; {otherwise}"


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
        found["contexts"] = tuple(card.index for card in cards() if card.context)
        found["allocator_backend"] = torch.cuda.get_allocator_backend()
        found["allocator"] = _settings(torch.cuda.memory._snapshot().get("allocator_settings", {}))
    return found


def cards() -> tuple[CardUse, ...]:
    """The cards that this process can see, and what it has on each. It makes no context."""
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ()
    own = torch.cuda.current_device()
    found = []
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        context = bool(torch._C._cuda_hasPrimaryContext(index))  # type: ignore[attr-defined]
        allocated = int(torch.cuda.memory_allocated(index)) if context else 0
        reserved = int(torch.cuda.memory_reserved(index)) if context else 0
        uuid = str(getattr(about, "uuid", ""))
        found.append(CardUse(index, about.name, uuid, index == own, context, allocated, reserved))
    return tuple(found)


def _settings(settings: dict[str, Any]) -> str:
    """The allocator's settings that were asked for, as it read them back, and whether segments can expand."""
    asked = next((str(value) for key, value in settings.items() if key.endswith("ALLOC_CONF")), "")
    return ",".join(filter(None, [asked, f"expandable_segments:{settings.get('expandable_segments')}"]))


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        if named := next((line for line in info if line.startswith("model name")), ""):
            return named.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _driver() -> str | None:
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version", encoding="utf-8") as text:
        words = text.readline().split()
        return next((word for word in words if word[0].isdigit() and "." in word), None)
    return None
