"""What is still alive, by who holds it: how many tensors, and how much their graphs pin besides."""

from __future__ import annotations

import gc
import re
import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import cuda_started, torch_module
from gpulint.memory.holding import holders_of
from gpulint.memory.live import live_tensors, on_device
from gpulint.memory.storages import storage_bytes, storage_key
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
    torch = torch_module()
    wanted = None if device is None else torch.device(device)
    found = [tensor for tensor in live_tensors() if on_device(tensor, wanted)]
    seen = {_key(tensor) for tensor in found}
    chosen: dict[Any, Any] = {}
    for tensor in sorted(found, key=lambda one: (one.grad_fn is None, -storage_bytes(one))):
        if not isinstance(tensor, torch.nn.Parameter):
            chosen.setdefault(_key(tensor), tensor)
    tensors = list(chosen.values())[:MOST]
    del found, chosen
    groups: dict[str, list[int]] = {}
    walker = _Walker(seen, wanted)
    for tensor, texts in zip(tensors, holders_of(tensors), strict=True):
        group = groups.setdefault("; ".join(_COUNT.sub("", text) for text in texts) or UNSEEN, [0, 0, 0])
        group[0] += 1
        group[1] += storage_bytes(tensor)
        group[2] += walker.pinned_by(tensor)
    every = [Held(holder, *figures) for holder, figures in groups.items()]
    return tuple(sorted(every, key=lambda one: -(one.bytes + one.pinned))[:largest])


def _key(tensor: Any) -> Any:
    return storage_key(tensor) or ("object", id(tensor))


class _Walker:
    """Walks graphs once, however many tensors hang on them."""

    def __init__(self, seen: set[Any], wanted: Any) -> None:
        self._seen = seen
        self._wanted = wanted
        self._nodes: set[Any] = set()
        self._names: dict[type, tuple[str, ...]] = {}
        self._recomputes = _checkpoints()

    def pinned_by(self, tensor: Any) -> int:
        """The bytes that only this tensor's graph keeps and no graph before it did."""
        if tensor.grad_fn is None or self._recomputes:
            return 0
        total, queue = 0, deque([tensor.grad_fn])
        while queue and len(self._nodes) < MOST_NODES:
            node = queue.popleft()
            if node is None or node in self._nodes:
                continue
            self._nodes.add(node)
            total += sum(map(self._new_bytes, self._saved(node)))
            queue.extend(following for following, _ in node.next_functions)
        return total

    def _saved(self, node: Any) -> list[Any]:
        """The tensors that a node has saved for its backward; none where a backward has freed them."""
        kind = type(node)
        if kind not in self._names:
            self._names[kind] = tuple(name for name in dir(node) if name.startswith("_saved_"))
        found: list[Any] = []
        for name in self._names[kind]:
            try:
                value = getattr(node, name)
            except RuntimeError:
                return []
            found += value if isinstance(value, (list, tuple)) else [value]
        if not self._names[kind] and hasattr(node, "saved_tensors"):  # of a torch.autograd.Function
            try:
                found += node.saved_tensors
            except RuntimeError:
                return []
        tensor_type = torch_module().Tensor
        return [value for value in found if isinstance(value, tensor_type)]

    def _new_bytes(self, tensor: Any) -> int:
        key = _key(tensor)
        if key in self._seen or not on_device(tensor, self._wanted):
            return 0
        self._seen.add(key)
        return storage_bytes(tensor)


def _checkpoints() -> bool:
    """Whether something is checkpointed now: to look at what such a graph has saved would compute it anew."""
    module = sys.modules.get("torch.utils.checkpoint")
    frame = getattr(module, "_CheckpointFrame", None)
    return frame is not None and any(type(thing) is frame for thing in gc.get_objects())
