"""What makes a CUDA context, on which card, and what chooses the card of a process."""

from __future__ import annotations

from typing import Final

# These make a context on the card that is current: the first, until one is chosen. Seen on torch 2.11; `init`,
# `is_available`, `current_device`, `get_device_name`, `manual_seed_all` and `empty_cache` make none.
MAKES_CONTEXT: Final = frozenset(f"torch.cuda.{name}" for name in "synchronize mem_get_info Stream".split())
# From these on the process has a card of its own.
CHOOSES: Final = frozenset(
    {"torch.cuda.set_device", "torch.set_default_device", "torch.accelerator.set_device_index"}
)
# For what stands under these another card is current.
CHOOSES_WITHIN: Final = frozenset({"torch.cuda.device", "torch.device", "torch.cuda.device_of"})
# Frameworks that choose the card of each process before any code of the program's own puts anything there.
CHOOSES_BY_ITSELF: Final = frozenset(
    {"Accelerator", "PartialState", "Fabric", "TrainingArguments", "HfArgumentParser"}
)
