"""What `gpulint check` is asked and what it writes: the options, the report, the diff, the progress of a long run, and what --verbose adds."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO

import click

from gpulint.atomic import write_atomic
from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import Line, as_error, say
from gpulint.cli._options import Given, leave_for_job
from gpulint.config import Config, ConfigResolver, shown_path
from gpulint.lint.checking import Mode
from gpulint.lint.engine import Run
from gpulint.reports import Report, plural, writer
from gpulint.reports.layout import colour_wanted, links_wanted, paint
from gpulint.source.discovery import Discovery
from gpulint.source.sources import Sources

if TYPE_CHECKING:
    from gpulint.rule import Rule

_OF_GITHUB: Final = ("github", "sarif")  # what its jobs read
_FOR_PEOPLE: Final = ("text", "concise", "grouped")
_SLOWEST: Final = 3  # files and rules that are named


class Request(Given):
    """The options of the command, those that a configuration has too as `overrides`."""

    paths: tuple[str, ...]

    def under(self, config: Config) -> Request:
        """With what `config` says where the command line does not."""
        only = _first(self.fix_only, self.fix is not False and config.fix_only)
        return self.but(
            fix=only or _first(self.fix, config.fix),
            fix_only=only,
            unsafe_fixes=_first(self.unsafe_fixes, config.unsafe_fixes),
            show_fixes=_first(self.show_fixes, config.show_fixes),
            output_format=self.output_format or config.output_format,
            baseline=self.baseline or config.baseline,
        )

    @property
    def mode(self) -> Mode:
        if self.diff:
            return "diff"
        written_otherwise = self.add_ignore or self.write_baseline
        return "fix" if (self.fix or self.fix_only) and not written_otherwise else "check"

    @property
    def resolver(self) -> ConfigResolver:
        """Answers which configuration is in force. Raises `ConfigError`."""
        return ConfigResolver(self.config.file, self.isolated, self.overrides)

    @property
    def from_stdin(self) -> bool:
        return self.paths == ("-",) or (not self.paths and self.stdin_filename is not None)


def _first(given: bool | None, otherwise: bool) -> bool:
    return otherwise if given is None else given


@dataclass(slots=True)
class Outcome:
    """A run, and what only the report needs."""

    run: Run
    rules: Callable[[], tuple[type[Rule], ...]] = tuple
    texts: dict[str, str] = field(default_factory=dict)
    fixed_stdin: bytes | None = None
    known: int = 0  # findings that the baseline accepts
    gone: int = 0  # entries of the baseline that nothing matches


def write(request: Request, outcome: Outcome) -> None:
    done = outcome.run
    if request.diff:
        _write_diff(request, outcome)
        return
    if outcome.fixed_stdin is not None:  # standard output is for the fixed source, the report goes beside it
        with while_read():
            sys.stdout.buffer.write(outcome.fixed_stdin)
    from gpulint.reports.lint import gathered

    with _output(request, sys.stderr if outcome.fixed_stdin is not None else sys.stdout) as out:
        report = Report(
            gathered(done.findings, outcome.rules() if done.findings else ()),
            done.fixed,
            done.checked,
            done.doubtful,
            outcome.rules,
            Sources(outcome.texts),
            unsafe=bool(request.unsafe_fixes),
            quiet=request.quiet,
            fix_only=bool(request.fix_only),
            show_fixes=bool(request.show_fixes),
            everything=request.verbose,
            links=links_wanted(out),
            colour=request.output_file is None and colour_wanted(out, request.colour),
            width=shutil.get_terminal_size().columns if out.isatty() else None,
        )
        _write_report(request, report, out)
    if request.output_format in _OF_GITHUB:
        from gpulint.reports.lint.services import job_summary

        leave_for_job("GITHUB_STEP_SUMMARY", job_summary(report))
        leave_for_job("GITHUB_OUTPUT", f"findings={len(report.findings)}\n")
    if outcome.known and not request.quiet:
        say(f"{plural(outcome.known, 'finding')} accepted by the baseline not shown")
    if outcome.gone and not request.quiet:
        say(
            f"{plural(outcome.gone, 'finding')} of the baseline no longer there; --write-baseline takes them out"
        )


def _write_report(request: Request, report: Report, out: TextIO) -> None:
    if not request.statistics:
        writer(request.output_format or "text")(report, out)
        return
    from gpulint.reports.lint import statistics, summary, table

    counted = statistics(report)
    if request.output_format == "json":
        out.write(json.dumps([one.to_json() for one in counted], indent=2) + "\n")
    elif request.output_format == "json-lines":
        out.writelines(json.dumps(one.to_json()) + "\n" for one in counted)
    elif request.output_format in _FOR_PEOPLE:
        paint([*table(counted), *summary(report)], out, report.colour)
    else:  # a service's format has no place for counts
        writer(request.output_format or "text")(report, out)
        paint(table(counted), sys.stderr, colour_wanted(sys.stderr, request.colour))


@contextlib.contextmanager
def _output(request: Request, default: TextIO) -> Iterator[TextIO]:
    if request.output_file is None:
        with contextlib.nullcontext() if request.watch else while_read():
            yield default
        return
    whole = io.BytesIO()
    stream = io.TextIOWrapper(whole, encoding="utf-8", errors="surrogateescape", newline="\n")
    yield stream
    stream.flush()
    with as_error(click.UsageError, OSError, of=f"--output-file: {request.output_file}"):
        write_atomic(request.output_file, whole.getvalue())


def _write_diff(request: Request, outcome: Outcome) -> None:
    from gpulint.reports.terminal import diff_lines

    done = outcome.run
    with _output(request, sys.stdout) as out:
        colour = request.output_file is None and colour_wanted(out, request.colour)
        for path, before, after in done.changes:
            paint(diff_lines(shown_path(path), before, after), out, colour)
    unchecked = [finding for finding in done.findings if finding.code == "GPU000"]
    if unchecked:
        writer("concise")(Report(unchecked, quiet=True), sys.stderr)
    if not request.quiet:
        say(f"would fix {plural(len(done.fixed), 'finding')} in {plural(len(done.changes), 'file')}")


def explain(found: Discovery, done: Run, seconds: float) -> None:
    """What --verbose adds, on standard error."""
    for path, reason in (*found.skipped, *done.skipped):
        say(f"skipped {shown_path(path)}: {reason}")
    unreadable = {finding.filename for finding in done.findings if finding.code == "GPU000"}
    for path in (path for path in done.gated_out if path not in unreadable):
        say(f"not analysed {shown_path(path)}: it has no words that a rule in force needs")
    for path, trace in done.internal_errors:
        say(f"traceback for {shown_path(path)}:")
        if trace:
            print(trace, file=sys.stderr)
    rules: Counter[str] = sum((Counter(one) for one in done.took.values()), Counter())
    for path, _ in Counter({path: sum(one.values()) for path, one in done.took.items()}).most_common(
        _SLOWEST
    ):
        say(f"slowest {shown_path(path)}: {_milliseconds(done.took[path])}")
    if rules:
        say(f"slowest rules: {_milliseconds(rules)}; the first to ask a question pays for it")
    files = f"{plural(done.checked, 'file')} checked, {done.from_cache} of them from the cache"
    stages = ", ".join(f"{name} {1000 * spent:.0f} ms" for name, spent in done.stages.items())
    say(f"{files}; {1000 * seconds:.0f} ms in all ({stages})")


def _milliseconds(took: Mapping[str, float]) -> str:
    """Seconds by rule as the sum and the rules that took most of it."""
    most = ", ".join(f"{code} {1000 * spent:.0f} ms" for code, spent in Counter(took).most_common(_SLOWEST))
    return f"{1000 * sum(took.values()):.0f} ms ({most})"


@contextlib.contextmanager
def progress(request: Request) -> Iterator[Callable[[int, int], None]]:
    """What shows on a terminal how many files are done, from the second second of a run on."""
    line = Line(request.quiet or os.environ.get("TERM") == "dumb", 1.0, 0.1)

    def show(done: int, total: int) -> None:
        filled = 24 * done // max(total, 1)
        line.say(f"{'━' * filled}{'╌' * (24 - filled)} {done}/{total} files")

    try:
        yield show
    finally:
        line.clear()
