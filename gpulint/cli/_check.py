"""What `gpulint check` does with its options: search, run, write the report."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

import click

from gpulint.atomic import write_atomic
from gpulint.bounds import is_inside, project_around
from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import Line, as_error, say
from gpulint.cli._options import Given, leave_for_job, refuse
from gpulint.config import Config, ConfigError, ConfigResolver, shown_path
from gpulint.lint import baseline
from gpulint.lint.checking import Checker, Mode
from gpulint.lint.engine import Options, Run, run
from gpulint.lint.results import REPORT_URL, Task
from gpulint.lint.selection import known_rules
from gpulint.reports import Report, plural, writer
from gpulint.reports.layout import colour_wanted, links_wanted, paint, printable
from gpulint.source.discovery import Discovery, discover
from gpulint.source.files import FileError, decode
from gpulint.source.program import UNKNOWN_TOP, top_of
from gpulint.source.sources import Sources

if TYPE_CHECKING:
    from gpulint.rule import Rule


def perform(request: Request) -> int:
    """Run the command; the exit status. Raises `ConfigError` and click's usage errors."""
    _refuse_contradictions(request)
    if request.show_settings:
        from gpulint.cli._settings import settings_text

        path = request.paths[0] if request.paths else os.curdir
        click.echo(settings_text(path, request.resolver), nl=False)
        return 0
    if request.show_files:
        return _show_files(request)
    if request.watch:
        from gpulint.cli._watch import watch

        return watch(request, check_once)
    return check_once(request)[0]


def check_once(request: Request) -> tuple[int, Run]:
    """Search, check and report once; the exit status and the run. Raises `ConfigError` and click's usage errors."""
    started = time.perf_counter()
    resolver = request.resolver
    config = resolver.for_directory(_started_in(request))
    if request.write_baseline and request.baseline is None and request.config.file is None:
        _refuse_baseline_elsewhere(config)
    request = request.under(config)
    found = Discovery()
    if request.from_stdin:
        outcome = _check_stdin(request, resolver)
    else:
        found = discover(request.paths or (os.curdir,), resolver, request.force_exclude)
        searched = time.perf_counter() - started
        outcome = _check_files(request, found)
        outcome.run.stages = {"search": searched, **outcome.run.stages}
    if request.write_baseline:
        return _write_baseline(request, outcome.run), outcome.run
    if request.add_ignore:
        return _add_ignores(request, outcome.run), outcome.run
    if request.baseline is not None:
        _compare(request.baseline, outcome)
    if (
        request.fix_only and not request.diff
    ):  # of what is left, files that could not be read or written are told
        outcome.run.findings = [finding for finding in outcome.run.findings if finding.code == "GPU000"]
        outcome.run.failing = sum(map(outcome.run.fails, outcome.run.findings))
    before = time.perf_counter()
    write(request, outcome)
    outcome.run.stages["report"] = time.perf_counter() - before
    for sentence in () if request.quiet else outcome.run.notes:
        say(sentence)
    for path, complaint in outcome.run.complaints:
        say(f"{shown_path(path)}: {complaint} Please report it at {REPORT_URL}")
    if request.verbose:
        explain(found, outcome.run, time.perf_counter() - started)
    return _exit_code(request, outcome.run), outcome.run


def _refuse_contradictions(request: Request) -> None:
    fixing, stdin = request.fix or request.fix_only or request.diff, request.from_stdin
    writing, silencing = request.write_baseline, request.add_ignore
    shown = request.show_files or request.show_settings
    named = "-" in request.paths and len(request.paths) > 1
    nameless, file = request.stdin_filename is not None and not stdin, request.config.file is not None
    busy, once = fixing or stdin or writing, stdin or silencing or writing
    refuse(
        (named, "- (standard input) cannot be checked together with files."),
        (nameless, "--stdin-filename needs - (standard input) instead of paths."),
        (file and request.isolated, "--config with a file and --isolated exclude each other."),
        (busy and silencing, "--add-ignore goes with paths, and without --fix, --diff and --write-baseline."),
        (once and request.watch, "--watch goes with paths, and without --add-ignore and --write-baseline."),
        (writing and fixing, "--write-baseline goes without --fix and --diff."),
        (shown and stdin, "--show-files and --show-settings go with paths, not with standard input."),
    )


def _started_in(request: Request) -> str:
    """The directory whose configuration says what the whole command does: how to report, whether to fix."""
    return os.path.dirname(os.path.abspath(request.stdin_filename)) if request.stdin_filename else os.getcwd()


def _show_files(request: Request) -> int:
    found = discover(request.paths or (os.curdir,), request.resolver, request.force_exclude)
    for target in found.targets:
        click.echo(printable(shown_path(target.path)))
    for problem in found.problems:
        say(f"{shown_path(problem.path)}: {problem.error.message}")
    return 2 if any(problem.missing for problem in found.problems) else 0


def _exit_code(request: Request, done: Run) -> int:
    code = done.exit_code
    if code != 2 and request.diff:
        code = 1 if done.changes else 0
    if code == 0 and request.exit_non_zero_on_fix and done.fixed:
        code = 1
    return 0 if code == 1 and request.exit_zero else code


def _check_files(request: Request, found: Discovery) -> Outcome:
    if not found.targets and not found.problems and not request.quiet:
        say("no Python files or notebooks found under the given paths")
    options = Options(
        request.mode, request.unsafe_fixes, request.jobs, not request.no_cache, request.cache_dir
    )
    with progress(request) as following:
        done = run(found, options, following)
    configs = {id(target.config): target.config for target in found.targets}.values()
    # What could not be read, or must not be, is not shown either.
    return Outcome(done, partial(_rules_of, tuple(configs)), {problem.path: "" for problem in found.problems})


def _rules_of(configs: Sequence[Config]) -> tuple[type[Rule], ...]:
    """The rules that some configurations know."""
    return tuple({rule.code: rule for config in configs for rule in known_rules(config)}.values())


def _check_stdin(request: Request, resolver: ConfigResolver) -> Outcome:
    path = os.path.abspath(request.stdin_filename) if request.stdin_filename else "<stdin>"
    config = resolver.for_directory(_started_in(request))
    raw = sys.stdin.buffer.read()
    top = top_of([path]) if request.stdin_filename else UNKNOWN_TOP
    checker = Checker(
        (config,), "diff" if request.mode == "fix" else request.mode, request.unsafe_fixes, False, top
    )
    passes = checker.passes_gate(raw, path, 0)
    result = checker.check_bytes(raw, Task(path, 0, len(raw), passes))
    outcome = Outcome(Run(), partial(known_rules, config))
    fixed = raw
    with contextlib.suppress(FileError):
        source = decode(path, raw)
        text = source.text
        if result.outcome is not None and request.mode == "fix":
            text = result.outcome.text
            fixed = source.encode(text)
            result = replace(result, findings=tuple(result.outcome.remaining))
        outcome.texts[path] = text
    if request.mode == "fix":
        outcome.fixed_stdin = fixed
    outcome.run.add(path, result, config, named=True)
    return outcome


def _write_baseline(request: Request, done: Run) -> int:
    path = request.baseline or baseline.DEFAULT_FILE
    number = baseline.write(path, done.findings, Sources())
    if not request.quiet:
        say(f"{plural(number, 'finding')} accepted in {path}")
    return 2 if done.exit_code == 2 else 0


def _refuse_baseline_elsewhere(config: Config) -> None:
    """A repository says which file of its own is written, and of no other."""
    project = project_around(config.root) or config.root
    if config.baseline is not None and not is_inside(os.path.realpath(config.baseline), project):
        message = f"{config.baseline} lies outside of {project}; to write it, name it with --baseline"
        raise ConfigError(f"{config.origin('baseline')}: {message}")


def _compare(path: str, outcome: Outcome) -> None:
    """Leave only the findings that the baseline does not accept."""
    done = outcome.run
    told = baseline.compare(path, done.findings, Sources(outcome.texts))
    known = {id(finding) for finding in told.known}
    done.failing = sum(done.fails(finding) for finding in done.findings if id(finding) not in known)
    done.findings = told.new
    outcome.known, outcome.gone = len(told.known), told.gone


def _add_ignores(request: Request, done: Run) -> int:
    from gpulint.lint.ignoring import ignore_in_files

    written, failed = ignore_in_files(done.findings)
    if not request.quiet:
        number = sum(written.values())
        say(f"wrote {plural(number, 'comment')} in {plural(len(written), 'file')}")
    for path, reason in failed.items():
        say(f"{shown_path(path)}: {reason}")
    return 2 if failed or done.exit_code == 2 else 0


# -- what is asked, and what is written ---------------------------------------------------------------------------

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
            unsafe=request.unsafe_fixes,
            quiet=request.quiet,
            fix_only=request.fix_only,
            show_fixes=request.show_fixes,
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
    by_file = Counter({path: sum(one.values()) for path, one in done.took.items()})
    for path, _ in by_file.most_common(_SLOWEST):
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
