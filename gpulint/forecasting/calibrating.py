"""Measures the card of this machine, so that forecasts for it need not take another's constants."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any, Final

from gpulint.forecasting.cards import Card
from gpulint.forecasting.recorder import ForecastError

MEASURING: Final = os.path.abspath(os.path.join(__file__, "..", "child", "measuring.py"))
TIMEOUT: Final = 300.0  # seconds
_MOST_OF_A_CONTEXT: Final = 4 << 30  # bytes; with all of CUDA's modules loaded it has some 1 GiB


def calibrate(python: str) -> dict[str, Any]:
    """The card's record, as `--card FILE` takes it, with the torch that it was measured with. Raises ForecastError."""
    try:
        done = subprocess.run([python, MEASURING], capture_output=True, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.SubprocessError) as error:
        raise ForecastError(f"the card could not be measured: {error}") from error
    said = done.stderr.strip().splitlines()
    if done.returncode:
        raise ForecastError(
            f"the card could not be measured: {said[-1] if said else 'no reason was given'}", done.stderr
        )
    found = json.loads(done.stdout.splitlines()[-1])
    if not 0 < found["context"] < _MOST_OF_A_CONTEXT:
        raise ForecastError(
            "the card could not be measured: other programs took or gave back memory of it meanwhile; try again when it is idle"
        )
    name = re.sub(r"[^a-z0-9]+", "-", found["label"].lower().removeprefix("nvidia ")).strip("-")
    card = Card(
        name,
        found["label"],
        found["memory"],
        (found["capability"][0], found["capability"][1]),
        found["processors"],
        found["context"],
        found["cublas_workspace"],
        found["cublaslt_workspace"],
        measured=True,
    )
    return {**card.to_json(), "torch": found["torch"], "held_by_others": found["others"]}
