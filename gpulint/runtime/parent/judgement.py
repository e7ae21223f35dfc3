"""What a judge says, and what every judge may have to say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.findings import Finding
from gpulint.runtime.parent.evidence import Evidence, Share
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import LineFigures, Site, count_steps, said_steps
from gpulint.units import format_bytes

NEGLIGIBLE = 1024  # bytes per step on the GPU that nobody will miss: a scalar block or two
FEWEST = 5  # sampled passes of a line below which nothing is refuted
NOTABLE = 0.005  # of the time the step works; what is below does not matter
OFTEN = 3  # graphs that died unused below which a forward was a try-out, or a model's first call
# Bytes, and the share of the run's peak, that a call must have kept for nothing. What it kept goes with its output, so
# less than this cannot move a peak: the allocator's smallest segment is 2 MiB.
NOTICED, NOTICED_SHARE = 64 * 1024, 0.001

Status = Literal["confirmed", "refuted", "inconclusive", "not reached"]


@dataclass(frozen=True, slots=True)
class Judgement(Record):
    """What one rank's figures say about one finding.

    `text` says what was measured, in one sentence. `device` and `host` are bytes per step that stay, `nodes`
    autograd nodes per step, `bytes` what a claim about a peak or an activation amounts to, `seconds` the time
    per step. `negligible`: true, and of no weight on the GPU. `hits` is how often the line ran.
    """

    status: Status
    text: str
    device: float | None = None
    host: float | None = None
    nodes: float | None = None
    bytes: int | None = None
    seconds: float | None = None
    hits: int | None = None
    negligible: bool = False
    holder: str = ""
    born: tuple[Site, ...] = ()


def size(amount: float) -> str:
    """Bytes for people."""
    return format_bytes(round(amount))


def per(window: str) -> str:
    """`a step`, `an evaluation`, "a call of `trial()`"."""
    word = window or "step"
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def rate(share: Share) -> str:
    """`1.0 MiB an evaluation`: what stays on the device."""
    return f"{size(share.each if share.window else share.device)} {per(share.window)}"


def place(site: Site) -> str:
    """`train.py:12`, or what stands for no Python line."""
    return f"{os.path.basename(site.file)}:{site.line}" if site.file else "a place without a Python line"


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def confirmed(text: str, **measured: Any) -> Judgement:
    """The run bears the claim out; `measured` are the other fields of a `Judgement`, here and below."""
    return Judgement("confirmed", text, **measured)


def refuted(text: str, **measured: Any) -> Judgement:
    """The run contradicts the claim."""
    return Judgement("refuted", text, **measured)


def inconclusive(text: str) -> Judgement:
    """The run does not tell."""
    return Judgement("inconclusive", text)


class Case:
    """A finding before one rank's evidence, as each judge is given it. `figures` are those of its own place, without any where it was
    not watched."""

    def __init__(self, finding: Finding, evidence: Evidence) -> None:
        self.finding = finding
        self.claim = finding.runtime_claim
        self.evidence = evidence
        self.figures = evidence.at(finding) or LineFigures(finding.filename, finding.line, None)

    @property
    def ran(self) -> str:
        """`the line ran 3 times`."""
        return f"the line ran {times(self.figures.hits or 0)}"

    def never_ran(self) -> Judgement | None:
        """Where the line did not run once: how far the script came, and why no further."""
        if self.figures.hits != 0:
            return None
        end = self.evidence.rank.end
        if end.reason != "stopped":
            return Judgement("not reached", f"the line did not run: {end.message}")
        steps = said_steps(count_steps(self.evidence.rank.samples))
        return Judgement("not reached", f"the line did not run within {steps}; run more (--steps, --reach)")

    def uncounted(self) -> Judgement | None:
        """Why nothing is known of the line: it never ran, or that could not be counted."""
        if self.figures.hits is None:
            return inconclusive("how often the line ran could not be counted")
        return self.never_ran()

    def unmeasured(self) -> Judgement | None:
        """Why the line's figures bear no judgement: it never ran, or not while steps were sampled."""
        problem = self.uncounted()
        if problem is None and self.evidence.rank.steps() == 0:
            return inconclusive(f"{self.ran}, but no step was sampled")
        if problem is None and not self.figures.sampled_hits:
            return inconclusive(f"{self.ran}, before sampling began")
        return problem

    def cannot_tell(self, why: str) -> Judgement:
        """`why` it cannot be told, unless the line never ran."""
        return self.never_ran() or inconclusive(why)
