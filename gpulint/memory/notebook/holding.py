"""Which places of a notebook hold which tensor memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpulint.memory.live import on_device, storage_bytes, storage_key, tensors_on
from gpulint.memory.notebook.roots import RECORD, Root, roots
from gpulint.units import format_bytes

MOST_OBJECTS = 300_000  # looked into, of all places together
_CLOSED = ("IPython.", "ipykernel.", "traitlets.", "zmq.", "asyncio.", "threading", "gpulint.")
NOWHERE = "nothing in the notebook: torch's C++ code, or a library"


@dataclass(slots=True)
class Storage:
    """The memory under one or several live tensors, with the places that lead to one of them, and those that do only through
    an autograd graph."""

    bytes: int
    shape: str
    holders: list[str] = field(default_factory=list)
    graphs: list[str] = field(default_factory=list)
    only_results: bool = True  # no variable of the user's leads here

    def held_by(self, root: Root, through_graph: bool) -> None:
        self.only_results &= root.is_result
        names = self.graphs if through_graph else self.holders
        # IPython's record is worth telling only where no other place holds the same.
        if root.name not in names and not (root.name == RECORD and (self.holders or self.graphs)):
            names.append(root.name)


@dataclass(frozen=True, slots=True)
class Holding:
    """What the same places hold: `names` of the places, the storages and their bytes; `shape` where it is one tensor. `in_graphs`
    of the bytes are reached only through an autograd graph."""

    names: tuple[str, ...]
    storages: int
    bytes: int
    shape: str = ""
    in_graphs: int = 0

    def __str__(self) -> str:
        what = self.shape if self.storages == 1 else f"{self.storages} tensors"
        share = "" if self.in_graphs == self.bytes else f"{format_bytes(self.in_graphs)} of it "
        graph = f", {share}in autograd graphs" if self.in_graphs else ""
        shown = ", ".join(self.names[:4]) + (
            f" and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        )
        return f"{format_bytes(self.bytes):>11}  {what}{graph}: {shown or NOWHERE}"


def storages(device: Any) -> dict[Any, Storage]:
    """The live tensor memory on `device` (a torch.device; None: all CUDA devices) that Python or a graph can reach."""
    found: dict[Any, Storage] = {}
    for tensor in tensors_on(device):
        _add(found, tensor)
    return found


def _add(found: dict[Any, Storage], tensor: Any) -> None:
    key = storage_key(tensor)
    if key is None:
        return
    dtype = str(tensor.dtype).removeprefix("torch.")
    found.setdefault(key, Storage(storage_bytes(tensor), f"{dtype}{list(tensor.shape)}"))


def name_holders(shell: Any, found: dict[Any, Storage], device: Any) -> bool:
    """Note with each storage the places that hold it; what Python has no object of (gradients that nobody
    has asked for, what a graph keeps) is added where it is on `device` to `found`. Whether all places were
    looked at to the end."""
    left = MOST_OBJECTS
    for root in roots(shell):
        left, keys = _reached(root.value, left)
        for key, (tensor, through_graph) in keys.items():
            if key not in found and on_device(tensor, device):
                _add(found, tensor)
            if key in found:
                found[key].held_by(root, through_graph)
    return left > 0


def kept_results(shell: Any, device: Any) -> list[Holding]:
    """The tensor memory on a device that only results keep which were shown, by the names they go under."""
    found = storages(device)
    name_holders(shell, found, device)
    held = {key: one for key, one in found.items() if one.only_results and (one.holders or one.graphs)}
    return grouped(held)


def grouped(found: dict[Any, Storage]) -> list[Holding]:
    """One entry for all that the same places hold, the largest first."""
    groups: dict[tuple[str, ...], list[Storage]] = {}
    for storage in found.values():
        groups.setdefault(tuple(storage.holders or storage.graphs), []).append(storage)
    every = []
    for names, storages in groups.items():
        behind = sum(one.bytes for one in storages if not one.holders and one.graphs)
        every.append(
            Holding(names, len(storages), sum(one.bytes for one in storages), storages[0].shape, behind)
        )
    return sorted(every, key=lambda holding: -holding.bytes)


# -- from a place down to tensors ----------------------------------------------------------------------------------


def _reached(value: Any, left: int) -> tuple[int, dict[Any, tuple[Any, bool]]]:
    """The storages below a value, each with a tensor and whether only a graph leads there; and how many objects may still be
    looked into."""
    from gpulint.runtime.holding.walking import Walk, explore, grad_fn_of, tensors_behind

    walk = Walk({}, storage_key, range(0), closed=_CLOSED, most=left)
    explore(walk, iter([(value, None)]))
    keys: dict[Any, tuple[Any, bool]] = {}
    for tensor in walk.tensors:
        _note(keys, tensor, False)
    behind = list(tensors_behind(map(grad_fn_of, walk.tensors), set(), MOST_OBJECTS))
    for tensor in behind:
        _note(keys, tensor, True)
    left -= len(walk.kept) + len(behind)
    walk.close()
    return left, keys


def _note(keys: dict[Any, tuple[Any, bool]], tensor: Any, through_graph: bool) -> None:
    key = storage_key(tensor)
    if key is not None:
        keys.setdefault(key, (tensor, through_graph))
