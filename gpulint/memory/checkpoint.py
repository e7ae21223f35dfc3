"""Checkpoints without a spike in device memory and without half-written files."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulint.memory.device import torch_module
from gpulint.memory.transfer import to_cpu
from gpulint.memory.units import format_bytes


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

    Anything with a `state_dict` (model, optimizer, scheduler, scaler) may stand in `obj`, alone or as the
    values of a dict; its state is saved. Tensors are copied to the host one at a time, so device memory does
    not rise, the model is never moved, and loading the file does not put it on a GPU. The host needs room for
    one copy. The file appears under its name only when it is complete: an interrupted save leaves the old one.
    `options` go to `torch.save`. Raises what it raises; the unfinished file is removed.
    """
    began = time.perf_counter()
    torch = torch_module()
    target = Path(path)
    content = to_cpu(_states(obj))
    handle, unfinished = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file, **options)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        os.chmod(unfinished, _mode(target))
        os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
    _sync_directory(target.parent)
    return Saved(target, size, time.perf_counter() - began)


def _states(obj: Any) -> Any:
    state = getattr(obj, "state_dict", None)
    if callable(state):
        return state()
    if isinstance(obj, Mapping) and type(obj) is dict:
        return {key: _states(value) for key, value in obj.items()}
    return obj


def _mode(target: Path) -> int:
    """The rights of the file that is replaced, or those that a new file gets."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_directory(directory: Path) -> None:
    # The new name is on disk only with its directory; not every system lets one be opened.
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
