"""What checking one file takes and gives, and what the check of a notebook needs of the one that checks files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpulint.findings import Finding, Severity
from gpulint.source.files import SourceFile

if TYPE_CHECKING:
    from gpulint.fix.fixing import FixResult


@dataclass(frozen=True, slots=True)
class FileResult:
    """What checking one file gave.

    `findings` are those left (under `diff`, those there are), and `doubtful` counts what is less certain than asked for;
    `outcome` is what fixing did or would do to the text `before`, None where it changes nothing. `dependencies` are the other files the findings rest on, as
    (absolute path, hash). `readable` is False where the bytes were no text; `trace` has the traceback of an
    internal error. `skipped` says why there was nothing to check in the file, `complaint` what went wrong with a fix;
    `took` are the seconds of each rule.
    """

    findings: tuple[Finding, ...] = ()
    doubtful: int = 0
    dependencies: tuple[tuple[str, str], ...] = ()
    before: str = ""
    outcome: FixResult | None = None
    digest: str = ""
    readable: bool = True
    internal: bool = False
    trace: str = ""
    skipped: str = ""
    complaint: str = ""
    took: tuple[tuple[str, float], ...] = ()

    @property
    def cacheable(self) -> bool:
        settled = self.readable and not self.internal and not self.skipped and not self.complaint
        return settled and bool(self.digest)


@dataclass(frozen=True, slots=True)
class Task:
    """One file to check, under the configuration with this index."""

    path: str
    config: int = 0
    size: int = 0
    passes_gate: bool = True


class FileChecker(Protocol):
    """`Checker`, as far as a notebook's cells ask it."""

    unsafe: bool

    def refused(self, task: Task, message: str, line: int = 1, column: int = 1) -> FileResult: ...

    def in_force(self, findings: Iterable[Finding], task: Task) -> list[Finding]: ...

    def passes_gate(self, raw: bytes, path: str, config: int) -> bool: ...

    def unused_suppressions(self, text: str, task: Task) -> list[Finding]: ...

    def lint(self, text: str, task: Task) -> list[Finding]: ...

    def linted(self, text: str, task: Task) -> FileResult: ...

    def wants_fixing(self, result: FileResult) -> bool: ...

    def fixed(
        self, source: SourceFile, task: Task, result: FileResult, fix: Callable[[], FixResult]
    ) -> FileResult: ...


def diagnostic(
    path: str, name: str, message: str, line: int = 1, column: int = 1, severity: Severity = Severity.ERROR
) -> Finding:
    """A GPU000: what prevents a file from being checked."""
    return Finding("GPU000", name, severity, message, path, line, column, line, column)
