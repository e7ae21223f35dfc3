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

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulint.memory.accounts.booking import book
    from gpulint.memory.accounts.records import Account
    from gpulint.memory.accounts.taking import account
    from gpulint.memory.checkpoint import Saved, save_checkpoint
    from gpulint.memory.cleaning import Cleared, clear
    from gpulint.memory.figures import MemoryStats, stats
    from gpulint.memory.guard import OomGuard, oom_guard
    from gpulint.memory.limits import limit, reset_peak
    from gpulint.memory.live import Lingering, lingering
    from gpulint.memory.oom.diagnosis import Diagnosis
    from gpulint.memory.phases.milestones import Milestone, Monitor
    from gpulint.memory.releasing import Released, release, restore
    from gpulint.memory.settings import (
        AllocatorSettingsError,
        AllocatorSettingsWarning,
        Configured,
        configure,
    )
    from gpulint.memory.transfer import to_cpu
    from gpulint.memory.window import Window, monitor
    from gpulint.units import format_bytes

# No file here may bear the name of one of these: importing it would bind the module to that name.
_HOMES = {
    "Account": "accounts.records",
    "AllocatorSettingsError": "settings",
    "AllocatorSettingsWarning": "settings",
    "Cleared": "cleaning",
    "Configured": "settings",
    "Diagnosis": "oom.diagnosis",
    "Lingering": "live",
    "MemoryStats": "figures",
    "Milestone": "phases.milestones",
    "Monitor": "phases.milestones",
    "OomGuard": "guard",
    "Released": "releasing",
    "Saved": "checkpoint",
    "Window": "window",
    "account": "accounts.taking",
    "book": "accounts.booking",
    "clear": "cleaning",
    "configure": "settings",
    "format_bytes": "gpulint.units",
    "limit": "limits",
    "lingering": "live",
    "monitor": "window",
    "oom_guard": "guard",
    "release": "releasing",
    "reset_peak": "limits",
    "restore": "releasing",
    "save_checkpoint": "checkpoint",
    "stats": "figures",
    "to_cpu": "transfer",
}

__all__ = [
    "Account",
    "AllocatorSettingsError",
    "AllocatorSettingsWarning",
    "Cleared",
    "Configured",
    "Diagnosis",
    "Lingering",
    "MemoryStats",
    "Milestone",
    "Monitor",
    "OomGuard",
    "Released",
    "Saved",
    "Window",
    "account",
    "book",
    "clear",
    "configure",
    "format_bytes",
    "limit",
    "lingering",
    "monitor",
    "oom_guard",
    "release",
    "reset_peak",
    "restore",
    "save_checkpoint",
    "stats",
    "to_cpu",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gpulint.memory' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home if home.startswith("gpulint.") else f"gpulint.memory.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
