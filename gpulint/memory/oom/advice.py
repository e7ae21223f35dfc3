"""What to do about an out-of-memory error, in order of measured benefit.

Figures are from an NVIDIA H200 with torch 2.11: a 4-layer transformer language model, and batches of varying
length for the allocator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `measured` is what it gained where it was measured, "" where it was not."""

    text: str
    measured: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.measured})" if self.measured else self.text


FRAGMENTATION: Final = (
    Advice(
        "turn on expandable segments: `gpulint run --alloc-conf auto -- ...`, or"
        " `memory.configure(expandable_segments=True)` before CUDA starts",
        "reserved 22.4 -> 6.4 GiB for the same 5.3 GiB of tensors",
    ),
    Advice(
        "with batches of varying length, run the longest one first, so that later ones fit its blocks",
    ),
    Advice(
        "or set `garbage_collection_threshold:0.8` together with a memory limit",
    ),
    Advice(
        "leave max_split_size_mb alone, also where the message suggests it",
        "`max_split_size_mb:128` reserved 106 GiB where the default took 22.4 GiB",
    ),
)

SHAPE: Final = (
    Advice(
        "print the shapes at the line that raised: `(N,)` against `(N, 1)` broadcasts to `(N, N)`, a size may stand"
        " where an index was meant, and a flattened batch may count twice"
    ),
    Advice(
        'try the line under `with torch.device("meta"):`, which allocates nothing, and read the shape it gives'
    ),
    Advice("a smaller batch, allocator settings or an emptied cache cannot make room for it"),
)

CAPACITY: Final = (
    Advice("run validation and inference under `torch.no_grad()`", "peak 1.56 -> 1.15 GiB"),
    Advice("in evaluation loops, `del` outputs after their last use", "peak -42 %"),
    Advice("call backward for each micro-batch, not once for their sum", "peak -30 %"),
    Advice("`del` large outputs (logits) after their last use, before `backward()`", "peak -17 %"),
    Advice("run teachers and frozen networks under `torch.no_grad()`", "peak -11 %"),
    Advice("find such places with `gpulint`, and memory that grows by the step with `gpulint verify`"),
    Advice("then: a smaller batch with gradient accumulation, bfloat16 autocast, activation checkpointing"),
)

SHARED: Final = (
    Advice(
        "see who holds the card with `gpulint gpu`; end a forgotten process of yours with `gpulint gpu kill PID`"
    ),
    Advice("or choose another card with CUDA_VISIBLE_DEVICES"),
    Advice(
        "clearing caches from a second process cannot help: a cache belongs to the process that filled it"
    ),
)

LIMITED: Final = (
    Advice("raise the limit that this process set (`set_per_process_memory_fraction`, `memory.limit`)"),
    *CAPACITY[:4],
)

LIBRARY: Final = (
    Advice(
        "leave room beside the caching allocator, for example `memory.limit(0.95)`: libraries allocate outside it"
    ),
    *CAPACITY[:4],
)

HOST: Final = (
    Advice(
        "this is the host's memory, not the GPU's: look for values held with their graph (`total += loss`)"
    ),
    Advice(
        "fewer DataLoader workers, a smaller prefetch_factor, `torch.load(..., mmap=True)` for large checkpoints"
    ),
    Advice("`gpulint verify` shows host memory that grows by the step, and what holds it"),
)

UNCLEAR: Final = (
    Advice(
        "look at the card while it happens with `gpulint gpu --watch`: something else may take memory for moments"
    ),
    Advice("run under `gpulint run`, which records the allocator's figures up to the error"),
    *CAPACITY[:4],
)
