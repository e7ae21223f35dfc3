"""The form of a rule: one class in one file, with its documentation, examples, claims and fix together.

A rule's module must not import libcst, rich or torch at its top: the gate reads `triggers` from every rule before
anything heavy is loaded. A file that has none of `gpulint.rules.MENTIONS` is turned away before even that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from gpulint.claims import DRIFT, Claim
from gpulint.findings import Applicability, Confidence, Severity

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.asked import Asked
    from gpulint.answers import Answer, Place


@dataclass(frozen=True, slots=True)
class Replace:
    """Write `new` where `old` stands. Both are expressions, or both are statements."""

    old: cst.CSTNode
    new: cst.CSTNode


@dataclass(frozen=True, slots=True)
class Remove:
    """Take out a statement with its own line, or a call argument with its comma. An emptied block gets `pass`."""

    old: cst.CSTNode


@dataclass(frozen=True, slots=True)
class Insert:
    """Put the statement `new` on its own line before or after the statement `anchor`."""

    anchor: cst.CSTNode
    new: cst.BaseStatement
    after: bool = True


@dataclass(frozen=True, slots=True)
class Wrap:
    """Put consecutive statements of one block under `header` (a `with` whose body is ignored)."""

    statements: tuple[cst.CSTNode, ...]
    header: cst.With


@dataclass(frozen=True, slots=True)
class Decorate:
    """Put `decorator` nearest to the `def`."""

    function: cst.FunctionDef
    decorator: cst.Decorator


@dataclass(frozen=True, slots=True)
class AddImport:
    """Make sure of `import module [as alias]`, or of `from module import name [as alias]`."""

    module: str
    name: str | None = None
    alias: str | None = None


Change = Replace | Remove | Insert | Wrap | Decorate | AddImport


@dataclass(frozen=True, slots=True)
class Repair:
    """A fix before it is text: changes to nodes of the file's own tree.

    `safe` is only what is proven to keep results and types. What cannot be proven is `unsafe`, and `unsafe_because` says
    why in one clause.
    """

    applicability: Applicability
    message: str
    changes: tuple[Change, ...]
    unsafe_because: str = ""

    @classmethod
    def unless(cls, why_unsafe: str, message: str, changes: tuple[Change, ...]) -> Repair:
        """A repair that is safe unless there is something that speaks against it."""
        return cls("unsafe" if why_unsafe else "safe", message, changes, why_unsafe)


@dataclass(frozen=True, slots=True)
class RelatedNode:
    """A second place: in this file, or a line of another."""

    message: str
    at: Place | None = None
    filename: str | None = None
    row: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What a mistake costs. `here` is what the answers say of this very place: what is kept, how often, how long;
    `measured` a figure from elsewhere, with what it was measured on."""

    here: str = ""
    measured: str = ""

    @classmethod
    def of(cls, given: Cost | str) -> Cost:
        """A text alone is about the place."""
        return cls(given) if isinstance(given, str) else given


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of a claim. The linter turns it into a `Finding` once it knows positions.

    `at` is the expression or statement that the report is about; a node of `asked.tree` will do. A `repair` that asks for or
    makes libcst nodes is given as a function: it is only called where the file is reported on. `doubts` say what the code does
    not show, each in one clause: with any the report has low confidence, and its fix is never safe.
    `subject` is the name of what it is about, as the code spells it, where that is not the claim's, and `claim` what a run can say to this report, where
    that is not the rule's `runtime_claim`: the verifier goes by these and never by the message. `follows` are the places that mend
    this as well where they are told and mended.
    """

    at: Place
    message: str
    reason: str = ""
    cost: Cost | str = ""
    severity: Severity | None = None
    repair: Repair | Callable[[], Repair | None] | None = None
    related: tuple[RelatedNode, ...] = ()
    doubts: tuple[str, ...] = ()
    subject: str = ""
    claim: Claim | None = None
    follows: frozenset[Any] = frozenset()

    @property
    def confidence(self) -> Confidence:
        return Confidence.with_doubts(self.doubts)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim of a rule: what it is about, where, what its questions were answered, and what is reported of it unless one of
    them refutes it: nothing where another claim of the same cause is. The report's doubts and its severity are the answers'. `about` is
    the expression whose value it is about, with its frame."""

    at: Place
    subject: str
    answers: tuple[Answer, ...]
    report: Callable[[], Report] | None
    about: tuple[Any, Any] | None = None


def node_of(place: Place) -> cst.CSTNode:
    """The node of a place, once libcst has read the file."""
    found: Any = place
    node: cst.CSTNode = getattr(found, "node_of_libcst", found)
    return node


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """What a rule says about the text of an allocator setting, wherever it stands: in Python, a shell script, a
    Dockerfile. `mended` is the text as it should be, `options` are the names of the options in it."""

    message: str
    reason: str = ""
    cost: Cost | str = ""
    mended: str | None = None
    applicability: Applicability = "unsafe"
    remedy: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """A setting a user may give in `[tool.gpulint.options.CODE]`."""

    name: str
    default: Any
    choices: tuple[Any, ...] = ()
    help: str = ""


class Rule:
    """Base of every rule. The subclass's docstring is its documentation, in Markdown, with the sections *What it does*,
    *Why is this bad*, *What it costs*, *Example*, *Use instead*, *Fix safety* and, where it has any, *Options*."""

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.WARNING
    # Every group must have at least one of its byte strings in the file, or the rule cannot fire there.
    triggers: ClassVar[tuple[tuple[bytes, ...], ...]]
    default: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = ()
    # Whether some of the rule's reports have doubts.
    doubts: ClassVar[bool] = False

    # Whether the rule speaks about test code as well. What a test costs, it costs once: few mistakes matter there.
    in_tests: ClassVar[bool] = False

    # Whether what the rule finds costs something only where the line runs: a function that nothing calls is a doubt then.
    costs_when_run: ClassVar[bool] = True

    # Whether it speaks of names: a report of a file then has one finding for each `subject`, with the other places beside it.
    of_names: ClassVar[bool] = False

    # What a run can say to the rule's findings, which carry it to `gpulint verify`.
    runtime_claim: ClassVar[Claim] = DRIFT

    # Whether the rule is asked about allocator settings in files other than Python's, through `setting_problems`.
    reads_settings: ClassVar[bool] = False

    def setting_problems(self, text: str, options: Mapping[str, Any]) -> Iterator[SettingProblem]:
        """What is wrong with an allocator setting; `{}` in it stands for what only a run can tell."""
        return iter(())

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        """Every claim that the rule considers, told or not: `gpulint explain` shows all of them."""
        raise NotImplementedError

    @classmethod
    def can_fire(cls, source: bytes) -> bool:
        """Whether the raw bytes of a file hold what this rule needs."""
        return all(any(word in source for word in group) for group in cls.triggers)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules in force for a run, with each rule's options, and the least confidence that is reported."""

    rules: tuple[type[Rule], ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    confidence: Confidence = Confidence.HIGH
    # The names of all rules there are by code, in force or not, a project's own among them.
    known: Mapping[str, str] = field(default_factory=dict)
