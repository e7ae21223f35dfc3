"""What checking one file takes and gives, also where it fails."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpulint.findings import Finding, Severity
from gpulint.source.files import FileError, SourceFile, TextError, read_bytes

if TYPE_CHECKING:
    from gpulint.fix.fixing import FixResult


OLDER: Final = "older-python"  # the name of what is said of a text that an older Python reads
REPORT_URL: Final = "https://github.com/gpulint/gpulint/issues"


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


def diagnostic(
    path: str, name: str, message: str, line: int = 1, column: int = 1, severity: Severity = Severity.ERROR
) -> Finding:
    """A GPU000: what prevents a file from being checked."""
    return Finding("GPU000", name, severity, message, path, line, column, line, column)


def refusal(path: str, wrong: TextError) -> Finding:
    """A GPU000 of a text that does not parse: a note, where an older Python reads it, for a file that a search has met."""
    name, severity = (OLDER, Severity.INFO) if wrong.old else ("syntax-error", Severity.ERROR)
    return diagnostic(path, name, wrong.message, wrong.line, wrong.column, severity)


def written(source: SourceFile, text: str, write: Callable[[str, bytes], None]) -> str:
    """Write `text` over the file; what prevented it, or nothing."""
    try:
        data = source.encode(text)
        if read_bytes(source.path) != source.raw:
            return "changed while it was being fixed; nothing was written, run again"
        write(source.path, data)
    except FileError as error:
        return f"cannot be fixed: {error.message}"
    except OSError as error:
        return f"cannot be written: {error.strerror or error}"
    return ""


def internal_error(path: str, error: Exception) -> FileResult:
    message = (
        f"internal error, this file was not checked: {_summary(error)}; "
        f"please report it at {REPORT_URL} (-v shows the traceback)"
    )
    trace = "".join(traceback.format_exception(error))
    return FileResult((diagnostic(path, "internal-error", message),), internal=True, trace=trace)


def _summary(error: Exception) -> str:
    first = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def crashed(task: Task, exitcode: int) -> FileResult:
    """The result for a file whose worker process died."""
    how = f"was killed by signal {-exitcode}" if exitcode < 0 else f"ended with status {exitcode}"
    if exitcode == -9:
        how += " (out of memory?)"
    message = f"internal error, this file was not checked: the worker {how}; please report it at {REPORT_URL}"
    return FileResult((diagnostic(task.path, "internal-error", message),), internal=True)
