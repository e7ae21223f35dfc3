"""`gpu_no_sync`: counts how often a test waits for the GPU, and tells at which lines."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gpulint.runtime.probes.frames import Frames
from gpulint.testing.devices import place_of

_SAID = "synchronizing CUDA operation"


@contextmanager
def counted(root: str) -> Iterator[Counter[str]]:
    """The synchronizations of a block, by the line that made them: `train(), train.py:12`. Other warnings pass."""
    frames = Frames(root)
    found: Counter[str] = Counter()
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def showwarning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
            if _SAID not in str(message):
                show(message, *args, **kwargs)
                return
            frame = frames.user_frame(sys._getframe(1))
            site = frames.sites[frames.index(frame)]
            found[place_of(site, root) if site.line else "no line of the project"] += 1

        warnings.showwarning = showwarning
        warnings.filterwarnings("always", message=f".*{_SAID}")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)


def explain(found: Counter[str], allowed: int) -> str | None:
    """Why the synchronizations are too many; None where they are not."""
    number = found.total()
    if number <= allowed:
        return None
    head = (
        f"gpu_no_sync: the test waited for the GPU {number} time{'s' * (number != 1)}, {allowed} are allowed"
    )
    lines = [f"  {count} at {where}" for where, count in found.most_common(10)]
    return "\n".join([head, *lines])
