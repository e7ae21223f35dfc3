"""The verifier's JSON: verdicts, what was not predicted, and the whole run as it was measured."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gpulint.runtime.parent.verdict import Verification

SCHEMA = 1


def as_json(verification: Verification) -> dict[str, Any]:
    """Everything as plain dicts and lists. `schema` changes when a field changes its meaning."""
    from gpulint.version import __version__

    data = verification.to_json()
    run = data.pop("run")
    return {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": verification.exit_code,
        "drift": verification.drift,
        "sampled_steps": verification.sampled,
        "idle": [one.to_json() for one in verification.idle],
        "tied": [one.to_json() for one in verification.tied],
        "host_growth": [one.to_json() for one in verification.host_growth],
        "phases": [phase.to_json() for phase in verification.phases],
        **data,
        "run": run,
    }


def write(verification: Verification, out: TextIO) -> None:
    json.dump(as_json(verification), out, indent=2)
    out.write("\n")
