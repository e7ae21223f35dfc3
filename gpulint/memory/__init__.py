"""The memory kit that a training script imports: figures, cleaning up, monitoring, recovery from out-of-memory.

    from gpulint import memory

    memory.configure(expandable_segments=True)      # before CUDA starts
    memory.stats().log("after model to device")
    with memory.monitor("validation") as window:
        validate(model)

Importing it does not import torch; every function does so when it is called. Every function can be called on
a machine without CUDA, where it does what is possible and says what is not.
"""

from __future__ import annotations

from gpulint.memory.accounts import account, book
from gpulint.memory.accounts.records import Account
from gpulint.memory.alloc_conf import AllocatorSettingsError, AllocatorSettingsWarning, Configured, configure
from gpulint.memory.figures import MemoryStats, Window, limit, monitor, reset_peak, stats
from gpulint.memory.guard import OomGuard, oom_guard
from gpulint.memory.live import Lingering, lingering
from gpulint.memory.milestones import Milestone, Monitor
from gpulint.memory.oom import Diagnosis
from gpulint.memory.releasing import Cleared, Released, clear, release, restore
from gpulint.memory.transfer import Saved, save_checkpoint, to_cpu
from gpulint.units import format_bytes

__all__ = [
    "Account", "AllocatorSettingsError", "AllocatorSettingsWarning", "Cleared", "Configured",
    "Diagnosis", "Lingering", "MemoryStats", "Milestone", "Monitor", "OomGuard", "Released",
    "Saved", "Window", "account", "book", "clear", "configure", "format_bytes", "limit",
    "lingering", "monitor", "oom_guard", "release", "reset_peak", "restore", "save_checkpoint",
    "stats", "to_cpu",
]  # fmt: skip
