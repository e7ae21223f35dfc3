"""The caching allocator's settings."""

from __future__ import annotations

from typing import Final

# Each with the version of torch that brought it; empty where that is not known.
SINCE: Final = {
    "max_split_size_mb": "1.10",
    "garbage_collection_threshold": "1.12",
    "roundup_power2_divisions": "1.12",
    "backend": "2.0",
    "expandable_segments": "2.1",
    "graph_capture_record_stream_reuse": "",
    "large_segment_size_mb": "",
    "max_non_split_rounding_mb": "",
    "per_process_memory_fraction": "",
    "pinned_num_register_threads": "",
    "pinned_reserve_segment_size_mb": "",
    "pinned_use_background_threads": "",
    "pinned_use_cuda_host_register": "",
    "release_lock_on_cudamalloc": "",
    "throw_on_cudamalloc_oom": "2.12",
    "pinned_free_catch_all": "2.12",
    "pinned_max_cached_size_mb": "2.12",
    "pinned_max_round_threshold_mb": "2.12",
}
# What builds for AMD call theirs.
ON_AMD: Final = {"release_lock_on_hipmalloc": ""}
