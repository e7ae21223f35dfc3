"""Copies of nested objects on the host, and checkpoints without a spike in device memory and without half-written files."""

from __future__ import annotations

import copy
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from gpulint.atomic import write_atomic_with
from gpulint.memory.device import torch_module
from gpulint.memory.live import storage_key
from gpulint.units import format_bytes

T = TypeVar("T")


def to_cpu(obj: T) -> T:
    """`obj` with every tensor in it detached and on the CPU; containers are rebuilt, the rest is the same object.

    Goes through dicts, lists, tuples, named tuples, sets, deques, dataclasses, mappings such as model outputs,
    and objects of this form inside each other, also with cycles. Tensors are copied one at a time. Tensors that
    share memory share it in the copy too (tied weights stay tied); a view that stands alone is copied without
    the rest of its base. Tensors that are on the CPU already are detached and not copied.
    """
    everything = _all_in(obj)
    tensors = [one for one in everything if isinstance(one, torch_module().Tensor)]
    copier = Copier(_shared_storages(tensors))
    known = {id(one): one for one in everything if _parts(one) is None}
    known |= {id(one): copier.tensor(one) for one in tensors}
    return copy.deepcopy(obj, known)


def _parts(obj: Any) -> list[Any] | None:
    """What lies directly in a container; None for other objects."""
    if isinstance(obj, Mapping):
        parts = [*obj.keys(), *obj.values()]
    elif isinstance(obj, (list, tuple, set, frozenset, deque)):
        parts = list(obj)
    elif is_dataclass(obj) and not isinstance(obj, type):
        parts = [getattr(obj, field.name, None) for field in fields(obj)]
    else:
        return None
    return [*parts, *getattr(obj, "__dict__", {}).values()]


def _all_in(obj: Any) -> list[Any]:
    """Every object in `obj`, each once, with `obj` itself."""
    seen: dict[int, Any] = {}
    waiting = [obj]
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen[id(current)] = current
            waiting += reversed(_parts(current) or ())
    return list(seen.values())


def _shared_storages(tensors: Iterable[Any]) -> set[tuple[str, int]]:
    """Storages that several tensors look at in more than one way."""
    views: dict[tuple[str, int], set[Any]] = {}
    for tensor in tensors:
        key = storage_key(tensor)
        if key is not None and tensor.device.type != "cpu" and _plain(tensor):
            views.setdefault(key, set()).add(_view(tensor))
    return {key for key, seen in views.items() if len(seen) > 1}


def _view(tensor: Any) -> tuple[Any, ...]:
    """How it looks at its storage."""
    return tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride())


def _plain(tensor: Any) -> bool:
    torch = torch_module()
    kinds = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
    return type(tensor) in kinds and tensor.layout is torch.strided


class Copier:
    """Copies single tensors, and those of a storage that is `shared` so that they share it again."""

    def __init__(self, shared: set[tuple[str, int]]) -> None:
        self.shared = shared
        self.storages: dict[tuple[str, int], Any] = {}
        self.tensors: dict[tuple[Any, ...], Any] = {}

    def tensor(self, tensor: Any) -> Any:
        key = storage_key(tensor)
        if tensor.device.type == "cpu" or key is None or not _plain(tensor):
            return tensor.detach().cpu()
        view = (key, *_view(tensor))
        if view not in self.tensors:
            self.tensors[view] = self._sharing(tensor, key) if key in self.shared else tensor.detach().cpu()
        return self.tensors[view]

    def _sharing(self, tensor: Any, key: tuple[str, int]) -> Any:
        if key not in self.storages:
            self.storages[key] = tensor.untyped_storage().cpu()
        made = torch_module().empty(0, dtype=tensor.dtype)
        return made.set_(self.storages[key], tensor.storage_offset(), tensor.size(), tensor.stride())


@dataclass(frozen=True, slots=True)
class Saved:
    """A written checkpoint: where, how many bytes, how many seconds it took."""

    path: Path
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.path}: {format_bytes(self.bytes)} in {self.seconds:.2f} s"


def save_checkpoint(obj: Any, path: str | os.PathLike[str], **options: Any) -> Saved:
    """Save `obj` with `torch.save`, all tensors in it as CPU tensors.

    Anything with a `state_dict` (model, optimizer, scheduler, scaler) may stand in `obj`, alone or in dicts and
    lists; its state is saved. Tensors are copied to the host one at a time, so device memory does not rise, the
    model is never moved, and loading the file does not put it on a GPU. The host needs room for one copy. The
    file appears under its name only when it is complete: an interrupted save leaves the old one. `options` go to
    `torch.save`. Raises what it raises, and OSError where the file cannot be written; no unfinished file is left.
    """
    began = time.perf_counter()
    content = to_cpu(_states(obj))

    def write(stream: IO[bytes]) -> None:
        watched = _Watched(stream, os.fspath(path))
        try:
            torch_module().save(content, watched, **options)
        except RuntimeError as error:
            # torch's writer turns a full disk into "unexpected pos"; the reason is what the file said.
            raise (watched.failure or error) from error

    size = write_atomic_with(os.fspath(path), write)
    return Saved(Path(path), size, time.perf_counter() - began)


class _Watched:
    """A file that remembers its first failure. `name` is what the file will be called."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self.name = name
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return self._stream.write(data)
        except OSError as error:
            self.failure = self.failure or error
            raise

    def flush(self) -> None:
        self._stream.flush()


def _states(obj: Any) -> Any:
    state = getattr(obj, "state_dict", None)
    if callable(state):
        return state()
    if type(obj) is dict:
        return {key: _states(value) for key, value in obj.items()}
    if type(obj) in (list, tuple):
        return type(obj)(_states(value) for value in obj)
    return obj
