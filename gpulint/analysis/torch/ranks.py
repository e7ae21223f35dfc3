"""What programs of several processes speak of."""

from __future__ import annotations

from typing import Final

# Names that only a program with several processes, each with its own GPU, has a use for.
OF_SEVERAL: Final = frozenset(
    "local_rank world_size init_process_group DistributedDataParallel DDP DistributedSampler is_main_process "
    "num_processes process_index PartialState AcceleratorState get_rank get_world_size local_process_index "
    "FullyShardedDataParallel FSDP".split()
)
