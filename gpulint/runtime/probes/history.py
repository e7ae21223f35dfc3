"""The allocator's own record of what happens, and the snapshot that it is written to: `gpulint verify --snapshot`."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Iterator
from typing import Final

import torch

# Events that torch keeps, the last ones: each costs a few KiB of host memory, and time whenever blocks are read.
ENTRIES: Final = 100_000


def record() -> None:
    """Record from now on, with the Python lines of allocations and frees."""
    torch.cuda.memory._record_memory_history("all", context="all", stacks="python", max_entries=ENTRIES)


@contextlib.contextmanager
def recorded() -> Iterator[bool]:
    """Record meanwhile, unless somebody does so already: whether it is begun here."""
    with without_inductor():
        begun = not any(torch.cuda.memory._snapshot()["device_traces"])
    if begun:
        record()
    try:
        yield begun
    finally:
        if begun:
            torch.cuda.memory._record_memory_history(None)


def dump(path: str) -> str:
    """Write a snapshot to `path`, whole or not at all; what came of it, for people."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        with without_inductor():
            snapshot = torch.cuda.memory._snapshot()
        with open(partial, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)  # torch's own viewer reads no later one
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        return f"No memory snapshot could be written to {path}: {error}."
    return f"A memory snapshot was written to {path}: `gpulint snapshot {path}` reads it."


def path_of(path: str, rank: int, alone: bool) -> str:
    """The file of one rank: `run.pickle`, or `run-rank1.pickle` where there are several."""
    stem, extension = os.path.splitext(path)
    return path if alone else f"{stem}-rank{rank}{extension}"


@contextlib.contextmanager
def without_inductor() -> Iterator[None]:
    """Keep torch from importing inductor meanwhile, unless the script has done so.

    To name a block's lines torch asks whether it has an attribute `_inductor`, which imports that, and dynamo with it, on
    the spot: seconds in the middle of a step of a script that compiles nothing and has no optimizer.
    """
    lazy = getattr(torch, "_lazy_modules", None)
    name = "_inductor"
    if not isinstance(lazy, set) or name not in lazy or f"torch.{name}" in sys.modules:
        yield
        return
    lazy.discard(name)
    try:
        yield
    finally:
        lazy.add(name)
