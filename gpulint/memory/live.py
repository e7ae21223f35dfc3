"""Tensors that are alive: how large the memory under them is, which of them share it, and who holds them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import cuda_started, torch_module
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes, plural

MOST = 2000  # tensors whose holders are looked for, the largest first, and those with a graph before others
MOST_NODES = 100_000  # of all graphs together
_COUNT = re.compile(r", \d+ tensors?$")  # what a holder of single tensors is told with
UNSEEN = "no Python object that gc can see"


# -- the memory under tensors ---------------------------------------------------------------------------------


def storage_key(tensor: Any) -> tuple[str, int] | None:
    """What identifies the memory of a strided tensor; None for tensors without a storage of their own kind."""
    try:
        pointer = tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return None  # sparse, functional and some subclass tensors
    return (str(tensor.device), pointer) if pointer else None


def storage_bytes(tensor: Any) -> int:
    """Bytes of a tensor's whole storage: a view keeps all of its base. Of a sparse tensor, its values and indices; of
    a DTensor and other wrappers, what is really here: their own storage is only as large as it would be."""
    from gpulint.runtime.probes.dispatch import parts_of

    if hasattr(tensor, "__tensor_flatten__"):
        return sum(map(storage_bytes, parts_of(tensor)))
    try:
        return int(tensor.untyped_storage().nbytes())
    except (NotImplementedError, RuntimeError):
        return sum(int(part.numel() * part.element_size()) for part in parts_of(tensor) or [tensor])


# -- who holds it ---------------------------------------------------------------------------------------------


def holders_of(tensors: Sequence[Any]) -> list[tuple[str, ...]]:
    """For each tensor, in words, the variable, container or attribute that keeps its memory alive."""
    if not tensors:
        return []
    from gpulint.runtime.holding.holders import find
    from gpulint.runtime.probes.base import Block
    from gpulint.runtime.probes.frames import Frames
    from gpulint.runtime.record.result import Site

    frames = Frames(_home())
    targets: dict[Any, Block] = {}
    for number, tensor in enumerate(tensors):
        # One birth site a tensor: it is how the answer tells which tensor a holder holds.
        frames.sites.append(Site("", number + 1, "asked for"))
        targets[key_of(tensor)] = Block(len(frames.sites) - 1, "device", 0, storage_bytes(tensor))
    held: list[list[str]] = [[] for _ in tensors]
    for holder in find(targets, key_of, range(0), frames):
        if holder.scope == "unknown":
            continue
        for birth in holder.births:
            if birth.site.function == "asked for":
                held[birth.site.line - 1].append(holder.text)
    return [tuple(texts) for texts in held]


def _home() -> str:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(main)) if main else os.getcwd()


def key_of(tensor: Any) -> Any:
    """What stands for a tensor's memory, or for a tensor that has none of its own."""
    return storage_key(tensor) or ("object", id(tensor))


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
        held = "; ".join(self.holders) if self.holders else UNSEEN
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
    biggest: dict[Any, Any] = {}
    for tensor in sorted(tensors_on(wanted), key=storage_bytes, reverse=True):
        biggest.setdefault(key_of(tensor), tensor)
    chosen = [t for t in biggest.values() if not isinstance(t, torch.nn.Parameter)][:largest]
    del biggest
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


def tensors_on(device: Any) -> list[Any]:
    """The live tensors on a torch.device; on all CUDA devices where none is named."""
    return [tensor for tensor in live_tensors() if on_device(tensor, device)]


def on_device(tensor: Any, wanted: Any) -> bool:
    """Whether a tensor is on a device; on any CUDA device where none is named."""
    if wanted is None:
        return bool(tensor.is_cuda)
    return tensor.device.type == wanted.type and wanted.index in (None, tensor.device.index)


@dataclass(frozen=True, slots=True)
class Held:
    """What one holder keeps alive. `bytes` are the storages of its `tensors`, `pinned` what only their autograd graphs keep besides;
    memory that two holders share counts for the first."""

    holder: str
    tensors: int
    bytes: int
    pinned: int = 0

    def __str__(self) -> str:
        graphs = f", and {format_bytes(self.pinned)} in autograd graphs" if self.pinned else ""
        size = f"{format_bytes(self.bytes)} in {plural(self.tensors, 'tensor')}"
        return f"{size}{graphs}: held by {self.holder}"


def held(device: Any = None, largest: int = 10) -> tuple[Held, ...]:
    """The `largest` holders of tensors on `device` ("cuda:0", "cpu", ...; None: all CUDA devices), by all that they keep.

    Parameters of live modules are left out. A scan of all Python objects and of the graphs; for diagnosis, not for a loop.
    """
    if device is None and not cuda_started():
        return ()
    from gpulint.runtime.holding.walking import tensors_behind

    torch = torch_module()
    wanted = None if device is None else torch.device(device)
    found = tensors_on(wanted)
    seen = {key_of(tensor) for tensor in found}
    chosen: dict[Any, Any] = {}
    for tensor in sorted(found, key=lambda one: (one.grad_fn is None, -storage_bytes(one))):
        if not isinstance(tensor, torch.nn.Parameter):
            chosen.setdefault(key_of(tensor), tensor)
    tensors = list(chosen.values())[:MOST]
    del found, chosen
    groups: dict[str, list[int]] = {}
    nodes: set[Any] = set()

    for tensor, texts in zip(tensors, holders_of(tensors), strict=True):
        # What only this tensor's graph keeps, and no graph before it did
        behind = tensors_behind([tensor.grad_fn], nodes, MOST_NODES)
        fresh = {
            key: storage_bytes(one)
            for one in behind
            if on_device(one, wanted) and (key := key_of(one)) not in seen
        }
        seen.update(fresh)
        group = groups.setdefault("; ".join(_COUNT.sub("", text) for text in texts) or UNSEEN, [0, 0, 0])
        group[0] += 1
        group[1] += storage_bytes(tensor)
        group[2] += sum(fresh.values())
    every = [Held(holder, *figures) for holder, figures in groups.items()]
    return tuple(sorted(every, key=lambda one: -(one.bytes + one.pinned))[:largest])
