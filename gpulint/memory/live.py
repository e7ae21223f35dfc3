"""Tensors that are alive, and who holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import cuda_started, torch_module
from gpulint.memory.holding import holders_of
from gpulint.memory.storages import storage_bytes, storage_key
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes


@dataclass(frozen=True, slots=True)
class Lingering:
    """A live piece of tensor memory. `bytes` is its whole storage: a view keeps all of its base.

    `holders` are sentence parts such as "list `losses` in `train()`, train.py:42"; empty where only torch's own
    C++ objects (an autograd graph, a library's buffer) hold it.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    bytes: int
    has_graph: bool
    holders: tuple[str, ...]

    def __str__(self) -> str:
        graph = ", with its autograd graph" if self.has_graph else ""
        held = "; ".join(self.holders) if self.holders else "no Python object that gc can see"
        return f"{format_bytes(self.bytes)} {self.dtype}{list(self.shape)} on {self.device}{graph}: held by {held}"


def lingering(device: Any = None, largest: int = 10) -> tuple[Lingering, ...]:
    """The `largest` live tensors on `device` ("cuda:0", "cpu", ...; None: all CUDA devices), with their holders.

    Parameters of live modules are left out: they are meant to be there. One scan of all Python objects, about
    0.15 s for 400,000 of them; for diagnosis, not for a loop.
    """
    if device is None and not cuda_started():
        return ()
    torch = torch_module()
    wanted = None if device is None else torch.device(device)
    found = [t for t in live_tensors() if on_device(t, wanted)]
    biggest: dict[Any, Any] = {}
    for tensor in sorted(found, key=storage_bytes, reverse=True):
        biggest.setdefault(storage_key(tensor) or id(tensor), tensor)
    chosen = [t for t in biggest.values() if not isinstance(t, torch.nn.Parameter)][:largest]
    del found, biggest
    held = holders_of(chosen)
    return tuple(
        Lingering(
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            bytes=storage_bytes(tensor),
            has_graph=tensor.grad_fn is not None,
            holders=texts,
        )
        for tensor, texts in zip(chosen, held, strict=True)
    )


def on_device(tensor: Any, wanted: Any) -> bool:
    """Whether a tensor is on a device; on any CUDA device where none is named."""
    if wanted is None:
        return bool(tensor.is_cuda)
    return tensor.device.type == wanted.type and wanted.index in (None, tensor.device.index)
