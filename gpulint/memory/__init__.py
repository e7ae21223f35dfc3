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
    from gpulint.memory.accounts.booking import book as book
    from gpulint.memory.accounts.records import Account as Account
    from gpulint.memory.accounts.taking import account as account
    from gpulint.memory.checkpoint import Saved as Saved
    from gpulint.memory.checkpoint import save_checkpoint as save_checkpoint
    from gpulint.memory.cleaning import Cleared as Cleared
    from gpulint.memory.cleaning import clear as clear
    from gpulint.memory.figures import MemoryStats as MemoryStats
    from gpulint.memory.figures import stats as stats
    from gpulint.memory.guard import OomGuard as OomGuard
    from gpulint.memory.guard import oom_guard as oom_guard
    from gpulint.memory.live import Lingering as Lingering
    from gpulint.memory.live import lingering as lingering
    from gpulint.memory.milestones import Milestone as Milestone
    from gpulint.memory.milestones import Monitor as Monitor
    from gpulint.memory.oom.diagnosis import Diagnosis as Diagnosis
    from gpulint.memory.peaks import limit as limit
    from gpulint.memory.peaks import reset_peak as reset_peak
    from gpulint.memory.releasing import Released as Released
    from gpulint.memory.releasing import release as release
    from gpulint.memory.releasing import restore as restore
    from gpulint.memory.settings import AllocatorSettingsError as AllocatorSettingsError
    from gpulint.memory.settings import AllocatorSettingsWarning as AllocatorSettingsWarning
    from gpulint.memory.settings import Configured as Configured
    from gpulint.memory.settings import configure as configure
    from gpulint.memory.transfer import to_cpu as to_cpu
    from gpulint.memory.window import Window as Window
    from gpulint.memory.window import monitor as monitor
    from gpulint.units import format_bytes as format_bytes

# No file here may bear the name of one of these: importing it would bind the module to that name.
_NAMES = {
    "accounts.booking": "book",
    "accounts.records": "Account",
    "accounts.taking": "account",
    "checkpoint": "Saved save_checkpoint",
    "cleaning": "Cleared clear",
    "figures": "MemoryStats stats",
    "guard": "OomGuard oom_guard",
    "peaks": "limit reset_peak",
    "live": "Lingering lingering",
    "oom.diagnosis": "Diagnosis",
    "milestones": "Milestone Monitor",
    "releasing": "Released release restore",
    "settings": "AllocatorSettingsError AllocatorSettingsWarning Configured configure",
    "transfer": "to_cpu",
    "window": "Window monitor",
    "gpulint.units": "format_bytes",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


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
