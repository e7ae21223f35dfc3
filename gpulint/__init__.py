"""gpulint: find, fix and verify GPU-memory mistakes in PyTorch training code.

Everything below is loaded on first use, so that importing gpulint costs nothing.
"""

from __future__ import annotations

from gpulint.version import __version__

TYPE_CHECKING = False  # type checkers take it for true; nothing is imported for it here
if TYPE_CHECKING:
    from typing import Any

    from gpulint import memory
    from gpulint.api import check_paths, check_source, fix_source
    from gpulint.config import Config, ConfigError
    from gpulint.findings import Edit, Finding, Fix, Position, Severity
    from gpulint.forecasting.api import forecast
    from gpulint.forecasting.recorder import ForecastError
    from gpulint.forecasting.result import Forecast
    from gpulint.marks import step, window
    from gpulint.rule import Rule
    from gpulint.runtime.parent.verdict import Verification
    from gpulint.verifying import verify

_HOMES = {
    "check_paths": "gpulint.api",
    "check_source": "gpulint.api",
    "fix_source": "gpulint.api",
    "Config": "gpulint.config",
    "ConfigError": "gpulint.config",
    "Edit": "gpulint.findings",
    "Finding": "gpulint.findings",
    "Fix": "gpulint.findings",
    "Forecast": "gpulint.forecasting.result",
    "ForecastError": "gpulint.forecasting.recorder",
    "Position": "gpulint.findings",
    "Severity": "gpulint.findings",
    "Rule": "gpulint.rule",
    "Verification": "gpulint.runtime.parent.verdict",
    "forecast": "gpulint.forecasting.api",
    "memory": "gpulint.memory",
    "step": "gpulint.marks",
    "verify": "gpulint.verifying",
    "window": "gpulint.marks",
}

__all__ = [
    "Config",
    "ConfigError",
    "Edit",
    "Finding",
    "Fix",
    "Forecast",
    "ForecastError",
    "Position",
    "Rule",
    "Severity",
    "Verification",
    "__version__",
    "check_paths",
    "check_source",
    "fix_source",
    "forecast",
    "memory",
    "step",
    "verify",
    "window",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gpulint' has no attribute {name!r}")
    from importlib import import_module

    value = import_module(home) if home == f"gpulint.{name}" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gpulint`: the magics `%%gpu_memory` and `%gpu_memory`, and failed cells that let go of their memory."""
    from gpulint.memory.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext gpulint`."""
    from gpulint.memory.notebook.extension import unload

    unload(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
