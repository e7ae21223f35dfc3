"""What a judge says, what every judge may have to say, and the judges of claims about where things are put."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.findings import Finding
from gpulint.runtime.parent.evidence import Evidence, Share
from gpulint.runtime.record.drift import theil_sen
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import MEASURED_HITS, LineFigures, Site, count_steps, said_steps
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


# -- judges of claims about where things are put: casts, gathered outputs, moves, contexts, what waits in cycles -----

PASSING = 0.1  # of what a line takes: what it gives back at once of that is no accident of rounding


def transient(case: Case) -> Judgement:
    """Whether the line needs more memory than it leaves, or gives back what was there before it."""
    figures = case.figures
    rise, left = (figures.early, figures.left) if figures.left is not None else (figures.peak, figures.growth)
    if rise is None or left is None:
        return inconclusive("what the line allocates and leaves was not measured")
    if left < 0:
        text = f"{case.ran} and gave back {size(-left)}, which was there in a wide type until then"
        return confirmed(text, bytes=-left, negligible=-left <= NEGLIGIBLE)
    if rise - left >= max(NOTICED, PASSING * rise):
        text = f"{case.ran} and took {size(rise)} for the {size(left)} that it left"
        return confirmed(text, bytes=rise - left)
    return refuted(f"{case.ran} and took no more than the {size(left)} that it left", bytes=0)


def gathered(case: Case) -> Judgement:
    """Whether memory grows while the program evaluates: batch after batch, as what is gathered does."""
    samples = case.evidence.rank.samples
    levels = [s.allocated for s in samples if s.kind == "eval" and s.allocated is not None]
    if len(levels) < FEWEST:
        seen = said_steps({"eval": len(levels)}) if levels else "no step"
        return inconclusive(f"{seen} of an evaluation was seen; let it evaluate sooner, or longer")
    slope = theil_sen(levels)
    if slope > NEGLIGIBLE:
        more = f"{size(slope)} more {case.evidence.where}"
        return confirmed(f"{more} with each of {len(levels)} batches of the evaluation", device=slope)
    return refuted(f"nothing grew over {len(levels)} batches of the evaluation")


def transfer(case: Case) -> Judgement:
    """Whether the line, with the wait for the GPU that a copy is, takes a share of the step that matters."""
    evidence, figures, work = case.evidence, case.figures, case.evidence.work_seconds()
    if figures.seconds is None or not figures.sampled_hits or not work:
        return inconclusive("how long the line takes was not measured")
    each = figures.seconds / min(figures.sampled_hits, MEASURED_HITS)
    per_step = each * figures.sampled_hits / evidence.rank.steps()
    text = f"the line ran {times(figures.sampled_hits)} in {evidence.steps_text()}: {per_step * 1000:.2f} ms a step"
    text += f", {per_step / work:.0%} of its time, with what the host waits for in it"
    judged = confirmed if per_step >= NOTABLE * work else refuted
    return judged(text, seconds=per_step)


def garbage(case: Case) -> Judgement:
    """Whether tensors wait in reference cycles, of whatever line."""
    evidence = case.evidence
    waiting = evidence.rank.garbage
    if waiting:
        amount, born = sum(drift.bytes_per_step for drift in waiting), tuple(d.site for d in waiting[:5])
        text = f"{size(amount)} a step wait in reference cycles, until gc.collect() frees them"
        return confirmed(text, device=amount, negligible=amount <= NEGLIGIBLE, born=born)
    never = case.never_ran()
    if never is not None:
        return never
    if evidence.rank.steps() < FEWEST:
        return inconclusive(f"only {evidence.steps_text()}: run more with --steps")
    return refuted(f"no tensor waited in a reference cycle in {evidence.steps_text()}")


def context(case: Case) -> Judgement:
    """Whether this process has a context on a card that is not its own."""
    rank = case.evidence.rank
    card = rank.environment.card
    if card is None:
        return inconclusive("which card the process works on could not be read")
    foreign = [str(other) for other in rank.environment.contexts if other != card]
    own = f"the process works on card {card}"
    if foreign:
        return confirmed(f"{own} and has a context on card {', '.join(foreign)} as well")
    if card == 0 and rank.world_size == 1:
        seen = "several ranks have to be seen (--nproc-per-node)"
        return inconclusive(f"{own}, which is the one in use until one is chosen: {seen}")
    return refuted(f"{own} and has a context nowhere else")
