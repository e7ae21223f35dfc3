"""What flows from the linter to everything after it: findings, their fixes, and text edits.

Rows and columns count from 1; a column counts characters of the decoded line, as ruff's JSON does.
An end position is exclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from gpulint.claims import DRIFT, Claim

Applicability = Literal["safe", "unsafe"]

DOCS_URL = "https://gpulint.readthedocs.io/rules/"
DIAGNOSTICS = "GPU0"  # how codes about files and comments begin, which claim nothing about a run


class Severity(str, Enum):
    """How much a finding matters: ``error`` costs activations, ``warning`` bytes or time; ``info`` is a note, which is told and
    fails no run: a choice, or what holds without anything to show that it matters."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def word(self) -> str:
        """As it is told to people."""
        return "note" if self is Severity.INFO else self.value


class Confidence(str, Enum):
    """How much a claim rests on: ``high`` on evidence alone; ``low`` where anything is open."""

    HIGH = "high"
    LOW = "low"

    @classmethod
    def with_doubts(cls, doubts: Sequence[str]) -> Confidence:
        """How sure a claim is that leaves this open."""
        return cls.LOW if doubts else cls.HIGH

    def reaches(self, least: Confidence) -> bool:
        """Whether this is at least `least`."""
        levels = list(Confidence)
        return levels.index(self) <= levels.index(least)


def in_words(doubts: Sequence[str], until: str = "") -> str:
    """What is left open, in one line for people, and how sure the claim is for that; empty where nothing is."""
    if not doubts:
        return ""
    return f"{'; '.join(dict.fromkeys(doubts))} ({Confidence.with_doubts(doubts).value} confidence{until})"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file: row and column, both counted from 1."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text from `start` up to, not including, `end` with `content`; in a notebook, in cell number `cell`."""

    start: Position
    end: Position
    content: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A set of edits that belong together. `safe` keeps results and types; `unsafe` asks to be read first, and
    `unsafe_because` says in one clause what may go wrong."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]
    unsafe_because: str = ""

    def applies(self, unsafe: bool) -> bool:
        """Whether it is applied where fixes are, `unsafe` ones too or not."""
        return unsafe or self.applicability == "safe"

    @property
    def safety(self) -> str:
        """How safe it is, for people: `safe`, `unsafe`, or `unsafe: ` and why."""
        return f"{self.applicability}: {self.unsafe_because}" if self.unsafe_because else self.applicability


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to a finding, such as the line in a helper that keeps the value."""

    filename: str
    position: Position
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim about one line.

    `message` is one line: which value, held by what. `reason` says whether the graph is live or freed and why;
    `cost` what it costs at this place, and `measured` a figure of the rule from elsewhere, with what it was measured on. `doubts` say what the code alone does not settle, each in one
    clause: without any, confidence is high, else low. `end_row`/`end_column` are exclusive. In a
    notebook rows count in the cell with the number `cell`, which counts all cells from 1.

    `subject` is the name of what the finding is about, as the code spells it: a holder, a variable, a network, a function
    that is called; empty where there is none. `claim` is what a run can say to it. A program reads these two; what is said
    to people may be put otherwise at any time. Findings that an older gpulint wrote have no claim.
    """

    code: str
    name: str
    severity: Severity
    message: str
    filename: str
    line: int
    column: int
    end_line: int
    end_column: int
    reason: str = ""
    cost: str = ""
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    cell: int | None = None
    doubts: tuple[str, ...] = ()
    subject: str = ""
    claim: Claim | None = None
    measured: str = ""

    @property
    def confidence(self) -> Confidence:
        return Confidence.with_doubts(self.doubts)

    @property
    def doubt(self) -> str:
        """The doubts as they are told to people."""
        return in_words(self.doubts)

    @property
    def start(self) -> Position:
        return Position(self.line, self.column)

    @property
    def end(self) -> Position:
        return Position(self.end_line, self.end_column)

    def is_mended(self, unsafe: bool) -> bool:
        """Whether --fix mends it, with --unsafe-fixes where these are asked for."""
        return self.fix is not None and self.fix.applies(unsafe)

    @property
    def runtime_claim(self) -> Claim:
        """What is claimed about a run; growth, where nothing is said."""
        return self.claim or DRIFT

    @property
    def is_diagnostic(self) -> bool:
        """Whether this is about a file or a comment: nothing that a run could tell about."""
        return self.code.startswith(DIAGNOSTICS)

    @property
    def url(self) -> str:
        return f"{DOCS_URL}{self.code}" if self.code.startswith("GPU") else DOCS_URL

    @property
    def sort_key(self) -> tuple[str, int, int, int, str]:
        return (self.filename, self.cell or 0, self.line, self.column, self.code)

    def to_json(self) -> dict[str, Any]:
        """The finding in the shape of ruff's JSON output, with `severity`, `confidence`, `doubts`, `subject`, `claim`,
        `reason`, `cost`, `measured`, `related` and the fix's `unsafe_because` added."""
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity.value,
            "confidence": self.confidence.value,
            "doubts": list(self.doubts),
            "message": self.message,
            "subject": self.subject,
            "claim": None if self.claim is None else self.claim.to_json(),
            "reason": self.reason,
            "cost": self.cost,
            "measured": self.measured,
            "filename": self.filename,
            "cell": self.cell,
            "location": {"row": self.line, "column": self.column},
            "end_location": {"row": self.end_line, "column": self.end_column},
            "fix": None
            if self.fix is None
            else {
                "applicability": self.fix.applicability,
                "message": self.fix.message,
                "unsafe_because": self.fix.unsafe_because,
                "edits": [
                    {
                        "content": edit.content,
                        **_in_cell(edit.cell),
                        "location": {"row": edit.start.row, "column": edit.start.column},
                        "end_location": {"row": edit.end.row, "column": edit.end.column},
                    }
                    for edit in self.fix.edits
                ],
            },
            "related": [
                {
                    "filename": other.filename,
                    **_in_cell(other.cell),
                    "location": {"row": other.position.row, "column": other.position.column},
                    "message": other.message,
                }
                for other in self.related
            ],
            "url": self.url,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
        fix, claim = data["fix"], data.get("claim")
        doubts = tuple(data.get("doubts", filter(None, (data.get("doubt"),))))  # there was one at most, once
        return cls(
            code=data["code"],
            name=data["name"],
            severity=Severity(data["severity"]),
            message=data["message"],
            reason=data.get("reason", ""),
            cost=data.get("cost", ""),
            filename=data["filename"],
            line=data["location"]["row"],
            column=data["location"]["column"],
            end_line=data["end_location"]["row"],
            end_column=data["end_location"]["column"],
            fix=None
            if fix is None
            else Fix(
                fix["applicability"],
                fix["message"],
                tuple(
                    Edit(
                        _position(edit["location"]),
                        _position(edit["end_location"]),
                        edit["content"],
                        edit.get("cell"),
                    )
                    for edit in fix["edits"]
                ),
                fix.get("unsafe_because", ""),
            ),
            related=tuple(
                Related(other["filename"], _position(other["location"]), other["message"], other.get("cell"))
                for other in data.get("related", ())
            ),
            cell=data.get("cell"),
            doubts=doubts,
            subject=data.get("subject", ""),
            claim=None if claim is None else Claim.from_json(claim),
            measured=data.get("measured", ""),
        )


def _in_cell(cell: int | None) -> dict[str, int]:
    return {} if cell is None else {"cell": cell}


def _position(data: dict[str, int]) -> Position:
    return Position(data["row"], data["column"])
