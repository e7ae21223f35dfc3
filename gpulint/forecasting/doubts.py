"""What a forecast cannot know, in words, and by how much it widens an interval."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

from gpulint.forecasting.recording import Recording
from gpulint.forecasting.result import Said
from gpulint.units import format_bytes

_WORDS: Final = {
    "mask": "how many elements a mask chooses lies in the data; all of them are taken, and the lower end of the intervals is for a tenth",
    "unique": "how many values differ lies in the data; all of them are taken to",
    "number": "a whole number is read from the card; it is taken to be 1",
    "boolean": "a condition is read from the card; it is taken to be false",
    "repeats": "how often elements are repeated lies in the data; once is taken",
    "bincount": "the largest value lies in the data; the result is taken to be as short as it may be",
    "compile": "torch.compile is left out and the model is run as it is; compiled code keeps and takes other memory",
}
DECIDED: Final = ("mask", "unique", "number", "repeats", "bincount")  # other answers to these can be tried
UNREACHED: Final = "unreached"  # of a phase that the program's text shows
MOST_UNREACHED: Final = 5
WIDENING: Final = {
    "compile": (0.30, 0.15),
    "repeats": (0.0, 0.10),
    "bincount": (0.0, 0.02),
}


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a kind as they came: bytes at most within each and left at its end."""

    peaks: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def growth(self) -> int:
        """Bytes that each of the last steps has left behind more than the one before; 0 where not all have."""
        later = self.ends[2:]
        steps = [after - before for before, after in itertools.pairwise(later)]
        return min(steps) if len(steps) >= 2 and min(steps) > 0 else 0

    @property
    def spread(self) -> float:
        """By how much of the highest peak the peaks after the second step differ."""
        later = self.peaks[2:]
        most = max(later, default=0)
        return 1 - min(later) / most if most else 0.0


def said(recording: Recording, training: Steps) -> list[Said]:
    """Every doubt about a run, those with a line first."""
    found = [
        Said(one.code, _WORDS[one.code], one.file, one.line)
        for one in sorted(recording.doubts, key=lambda one: (one.file, one.line))
    ]

    def add(code: str, text: str, file: str = "", line: int = 0) -> None:
        found.append(Said(code, text, file, line))

    facts, seen = recording.facts, len(training.peaks)
    if not seen:
        add("no-steps", "no step of a training was seen: no optimizer stepped and no module ran twice")
    elif seen < 3 and recording.end != "finished":
        add("few-steps", f"only {seen} steps were seen")
    if recording.end == "time":
        add("time", "the time was up before enough was seen (--timeout)")
    for file, line, what in facts.get("unreached", ())[:MOST_UNREACHED]:
        add(UNREACHED, f"this {what} was not reached, and what it takes is not known", file, line)
    if recording.end == "time" and seen < 3:
        add(UNREACHED, "what comes after the steps that were seen is not known")
    if facts.get("cut_epochs"):
        what = (
            "epochs were ended early, once their batches took the same; a batch that is larger was not seen"
        )
        add("cut", what)
    if training.growth:
        each, ends = format_bytes(training.growth), len(training.ends)
        add("grows", f"each step leaves {each} behind, so the figures hold for {ends} steps and not for more")
    if training.spread > 0.02:
        most = f"{training.spread:.0%}"
        add("varies", f"steps differ by up to {most}; the upper end allows for one larger than those seen")
    return found
