"""The verifier's holder search, asked about single tensors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from gpulint.memory.storages import storage_bytes, storage_key


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
        targets[key_of(tensor)] = Block(len(frames.sites) - 1, "device", 0, storage_bytes(tensor), 1)
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
