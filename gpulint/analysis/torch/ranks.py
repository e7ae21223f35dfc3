"""What programs of several processes speak of."""

from __future__ import annotations

from typing import Final

# Names that only a program with several processes, each with its own GPU, has a use for.
OF_SEVERAL: Final = frozenset(
    "local_rank world_size init_process_group DistributedDataParallel DDP DistributedSampler is_main_process "
    "num_processes process_index PartialState AcceleratorState get_rank get_world_size local_process_index "
    "FullyShardedDataParallel FSDP".split()
)

# The number of a process, how many there are, who is the first of them, and whether there is more than one.
RANKS: Final = frozenset(
    "rank local_rank global_rank rank_id node_rank process_index local_process_index get_rank get_local_rank "
    "LOCAL_RANK RANK".split()
)
COUNTS: Final = frozenset("world_size num_processes get_world_size WORLD_SIZE".split())
FIRST: Final = frozenset(
    "is_main_process is_main is_master is_master_process main_process master_process is_rank_zero is_rank0 "
    "is_local_main_process is_world_process_zero is_global_zero is_local_master is_primary".split()
)
SPREAD: Final = frozenset(
    "distributed is_distributed use_distributed multiprocessing_distributed distributed_run distributed_training ddp use_ddp is_ddp dist "
    "is_dist use_dist is_initialized is_dist_avail_and_initialized is_dist_initialized".split()
)
