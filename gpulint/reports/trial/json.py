"""A trial as JSON: the verdict on each fix with its edits and gains, what was compared within, and every run."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gpulint.source.edits import unified_diff
from gpulint.trial.plan import Gain, Judged, Trial

SCHEMA = 1


def as_json(trial: Trial) -> dict[str, Any]:
    """Everything as plain dicts and lists. `schema` changes when a field changes its meaning."""
    from gpulint.version import __version__

    runs = {"before": trial.before, "again": trial.again, "after": trial.after}
    return {
        "schema": SCHEMA,
        "version": __version__,
        "target": trial.target,
        "exit_code": trial.exit_code,
        "failure": trial.failure,
        "fixes": [_judged(one) for one in trial.judged],
        "gains": [_gain(one) for one in trial.gains],
        "noise": trial.noise,
        "doubts": list(trial.doubts),
        "left": _left(trial),
        "diffs": {
            path: unified_diff(trial.originals[path], text, path) for path, text in trial.texts.items()
        },
        "written": list(trial.written),
        "attempts": [
            {"label": a.label, "fixes": list(a.fixes), "seconds": a.seconds, "outcome": a.outcome}
            for a in trial.attempts
        ],
        "runs": {name: None if run is None else run.to_json() for name, run in runs.items()},
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "number": judged.fix.number,
        "status": judged.status,
        "text": judged.text,
        "alone": judged.alone,
        "gains": [_gain(one) for one in judged.gains],
        "findings": [finding.to_json() for finding in judged.fix.told],
        "defect_of_gpulint": judged.is_our_defect,
    }


def _left(trial: Trial) -> dict[str, Any] | None:
    """What running finds of the program with the fixes that pay; the run itself is among `runs`."""
    found = trial.left
    if found is None:
        return None
    return {
        "drift": found.drift,
        "unpredicted": [one.to_json() for one in found.unpredicted],
        "wasted": [one.to_json() for one in found.wasted],
    }


def _gain(gain: Gain) -> dict[str, Any]:
    return {**gain.to_json(), "saved": gain.saved}


def write(trial: Trial, out: TextIO) -> None:
    json.dump(as_json(trial), out, indent=2)
    out.write("\n")
