"""A claim stands on questions, the same ones whichever rule asks, and every question has three answers.

What is refuted is not told; what is proven on every question is told with high confidence; what leaves something open is
told with its doubts in words, with low confidence. Where it holds, and nothing shows that it matters, it is a note.
`gpulint explain` shows all of it, told or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from gpulint.findings import Confidence, Severity

if TYPE_CHECKING:
    import ast

    import libcst as cst

    Place = cst.CSTNode | ast.AST  # a node of one of the two trees


NO_FURTHER: Final = "gpulint looked no further: too much of the program calls, or is called from, here"


class Question(str, Enum):
    """What is asked, as `explain` writes it."""

    TENSOR = "tensor"  # is it a tensor at all?
    GRAD = "grad"  # is grad on at this statement, and who says so?
    GRAPH = "graph"  # has the value a graph here: live, freed, kept?
    BACKWARD = "backward"  # does any backward go through it later, here or in a caller?
    OUTLIVES = "outlives"  # does the place that keeps it outlive the step?
    REPEATS = "repeats"  # how often does the line run: per element, step, epoch, phase, once?
    DEVICE = "device"  # is it on a GPU?
    SIZE = "size"  # a number, a row of scores, activations, a model?
    TRAINED = "trained"  # does the network train here, and with which optimizer?
    READS = "reads"  # how is the result used: as numbers, as a tensor, unknown?
    REACHED = "reached"  # who gets here, in which mode and phase?
    MEANT = "meant"  # does the author do it on purpose?


class Verdict(str, Enum):
    """An answer to a question, with regard to the claim."""

    PROVEN = "proven"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Answer:
    """One question's answer: `clause` says why, `at` is the line that says so, where there is one beside the claim's. Where
    that stands in another file, `filename` is its path. `minor` is one that says that it costs little, or that nothing shows that it
    matters: the claim is a note then."""

    question: Question
    verdict: Verdict
    clause: str
    at: Place | None = None
    filename: str = ""
    minor: bool = False


def proven(question: Question, clause: str, at: Place | None = None, filename: str = "") -> Answer:
    """The claim holds, as far as this question goes."""
    return Answer(question, Verdict.PROVEN, clause, at, filename)


def minor(question: Question, clause: str, at: Place | None = None, filename: str = "") -> Answer:
    """The claim holds, as far as this question goes, and costs little, or nothing shows that it matters."""
    return Answer(question, Verdict.PROVEN, clause, at, filename, minor=True)


def refuted(question: Question, clause: str, at: Place | None = None, filename: str = "") -> Answer:
    """The claim does not hold."""
    return Answer(question, Verdict.REFUTED, clause, at, filename)


def left_open(question: Question, clause: str, at: Place | None = None, filename: str = "") -> Answer:
    """The code does not say."""
    return Answer(question, Verdict.OPEN, clause, at, filename)


def confidence_of(answers: Iterable[Answer]) -> Confidence | None:
    """The arithmetic, the same for every claim. Stops at the first answer that refutes it."""
    given = []
    for answer in answers:
        if answer.verdict is Verdict.REFUTED:
            return None
        given.append(answer)
    return Confidence.with_doubts(doubts_of(given))


def severity_of(answers: Iterable[Answer], worst: Severity) -> Severity:
    """How much a claim matters, the same for every rule: what its rule says of it, and a note where an answer says that it is minor."""
    return Severity.INFO if any(answer.minor for answer in answers) else worst


def doubts_of(answers: Iterable[Answer]) -> tuple[str, ...]:
    """What is left open, each in one clause."""
    return tuple(answer.clause for answer in answers if answer.verdict is Verdict.OPEN)


def least_open(answers: Iterable[Answer]) -> tuple[int, bool]:
    """To prefer what leaves least open, and of that what matters most: the less the better."""
    given = tuple(answers)
    return len(doubts_of(given)), any(answer.minor for answer in given)


def until_refuted(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """The answers up to the first that refutes the claim: what comes after it need not be asked."""
    found: list[Answer] = []
    for answer in answers:
        found.append(answer)
        if answer.verdict is Verdict.REFUTED:
            break
    return tuple(found)
