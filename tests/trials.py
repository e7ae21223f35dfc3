"""Programs before and after their fixes, run by `trial`, and what the fixes changed."""

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import warm

TRIAL = Path(__file__).parent / "trial.py"
_FIGURE = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\bnan\b|\binf\b")
_GRAPH = re.compile(r",\s+grad_fn=<\w+>|,\s+requires_grad=True")


@dataclass(frozen=True, slots=True)
class Trial:
    """A program to run; `script`: as a whole, from its first line to its last; `card`: on a card that is pretended."""

    name: str
    path: Path
    script: bool = False
    card: bool = False
    arguments: tuple[str, ...] = ()


def run(trials: list[Trial], folder: Path) -> dict[str, dict[str, Any]]:
    """What came of each function of each program, by name. Raises CalledProcessError where a run breaks off."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    plan, results = folder / "plan.json", folder / "results.json"
    plan.write_text(json.dumps([{**asdict(one), "path": str(one.path)} for one in trials]))
    command = [sys.executable, str(TRIAL), str(plan), str(results)]
    warm.run_torch(command, cwd=folder, env=env, check=True, timeout=280)
    return json.loads(results.read_text(encoding="utf-8"))


def ran(outcome: Mapping[str, Any]) -> bool:
    """Whether something of a program besides its imports ran to its end, or its body trained."""
    return any(
        "error" not in left and (name != "<module>" or left["events"]) for name, left in outcome.items()
    )


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What a program does differently after its fixes, in a sentence for each of its functions."""
    return [
        f"{name}: {wrong}"
        for name, left in before.items()
        for wrong in _differences(left, after.get(name, after.get("<module>", {"events": []})))
    ]


def breaks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What of a program ran before its fixes and raises after them, in a sentence for each of its functions."""
    return [
        f"{name}: ran, and now ends with {now['error']}: {now['text']}"
        for name, left in before.items()
        if "error" not in left
        and (now := after.get(name, after.get("<module>", {}))).get("error", "TimeoutError") != "TimeoutError"
    ]


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The first event that differs, else how the end differs. What did not run to its end is compared as far as it came."""
    for number, (old, new) in enumerate(zip(before["events"], after["events"], strict=False)):
        if not same(old, new):
            yield f"event {number} was {_short(old)} and is {_short(new)}"
            return
    if "error" in before or after.get("error") == "TimeoutError":
        return
    if "error" in after:
        yield f"ran, and now ends with {after['error']}: {after['text']}"
    elif len(before["events"]) != len(after["events"]):
        yield f"had {len(before['events'])} events and has {len(after['events'])}"
    else:
        for part in ("returned", "kept", "grad"):
            if not same(before[part], after[part]):
                yield f"what is {part} was {_short(before[part])} and is {_short(after[part])}"
        if not same(figures(before["printed"]), figures(after["printed"]), 2e-4):
            yield f"printed {before['printed'][-200:]!r}, now {after['printed'][-200:]!r}"


def figures(printed: str) -> list[float]:
    """The numbers of a text. A tensor is printed with its graph, and rounded otherwise than a number."""
    return [float(figure) for figure in _FIGURE.findall(_GRAPH.sub("", printed))]


def same(one: Any, other: Any, tolerance: float = 1e-5) -> bool:
    """Whether two values are the same up to rounding."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        alike = math.isnan(one) and math.isnan(other)
        return alike or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [tolerance] * len(one)))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], tolerance) for key in one)
    return type(one) is type(other) and bool(one == other)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 160 else f"{text[:157]}..."
