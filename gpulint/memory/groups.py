"""What is still alive, by who holds it: how many tensors, and how much their graphs pin besides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import cuda_started, torch_module
from gpulint.memory.holding import holders_of, key_of
from gpulint.memory.live import on_device
from gpulint.memory.storages import storage_bytes
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes

MOST = 2000  # tensors whose holders are looked for, the largest first, and those with a graph before others
MOST_NODES = 100_000  # of all graphs together
_COUNT = re.compile(r", \d+ tensors?$")  # what a holder of single tensors is told with
UNSEEN = "no Python object that gc can see"


@dataclass(frozen=True, slots=True)
class Held:
    """What one holder keeps alive. `bytes` are the storages of its `tensors`, `pinned` what only their autograd graphs keep besides;
    memory that two holders share counts for the first."""

    holder: str
    tensors: int
    bytes: int
    pinned: int = 0

    def __str__(self) -> str:
        number = f"{self.tensors} tensor{'' if self.tensors == 1 else 's'}"
        graphs = f", and {format_bytes(self.pinned)} in autograd graphs" if self.pinned else ""
        return f"{format_bytes(self.bytes)} in {number}{graphs}: held by {self.holder}"


def held(device: Any = None, largest: int = 10) -> tuple[Held, ...]:
    """The `largest` holders of tensors on `device` ("cuda:0", "cpu", ...; None: all CUDA devices), by all that they keep.

    Parameters of live modules are left out. A scan of all Python objects and of the graphs; for diagnosis, not for a loop.
    """
    if device is None and not cuda_started():
        return ()
    from gpulint.runtime.holding.walking import tensors_behind

    torch = torch_module()
    wanted = None if device is None else torch.device(device)
    found = [tensor for tensor in live_tensors() if on_device(tensor, wanted)]
    seen = {key_of(tensor) for tensor in found}
    chosen: dict[Any, Any] = {}
    for tensor in sorted(found, key=lambda one: (one.grad_fn is None, -storage_bytes(one))):
        if not isinstance(tensor, torch.nn.Parameter):
            chosen.setdefault(key_of(tensor), tensor)
    tensors = list(chosen.values())[:MOST]
    del found, chosen
    groups: dict[str, list[int]] = {}
    nodes: set[Any] = set()

    def pinned_by(tensor: Any) -> int:
        """The bytes that only this tensor's graph keeps and no graph before it did."""
        behind = [
            one for one in tensors_behind([tensor.grad_fn], nodes, MOST_NODES) if on_device(one, wanted)
        ]
        fresh = {key: storage_bytes(one) for one in behind if (key := key_of(one)) not in seen}
        seen.update(fresh)
        return sum(fresh.values())

    for tensor, texts in zip(tensors, holders_of(tensors), strict=True):
        group = groups.setdefault("; ".join(_COUNT.sub("", text) for text in texts) or UNSEEN, [0, 0, 0])
        group[0] += 1
        group[1] += storage_bytes(tensor)
        group[2] += pinned_by(tensor)
    every = [Held(holder, *figures) for holder, figures in groups.items()]
    return tuple(sorted(every, key=lambda one: -(one.bytes + one.pinned))[:largest])
