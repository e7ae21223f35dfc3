"""Checkpoints without a spike in device memory and without half-written files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpulint.atomic import write_atomic_with
from gpulint.memory.device import torch_module
from gpulint.memory.transfer import to_cpu
from gpulint.units import format_bytes


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
    torch = torch_module()
    content = to_cpu(_states(obj))

    def write(stream: IO[bytes]) -> None:
        watched = _Watched(stream, os.fspath(path))
        try:
            torch.save(content, watched, **options)
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
