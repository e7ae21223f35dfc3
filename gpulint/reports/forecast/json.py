"""A forecast as JSON, everything of it in bytes."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gpulint.forecasting.result import Forecast


def as_json(forecast: Forecast) -> dict[str, Any]:
    """Everything as plain dicts and lists. `schema` changes when a field changes its meaning."""
    from gpulint.version import __version__

    return {"version": __version__, **forecast.to_json()}


def write(forecast: Forecast, out: TextIO) -> None:
    json.dump(as_json(forecast), out, indent=2)
    out.write("\n")
