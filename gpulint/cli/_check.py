"""What `gpulint check` does with its options: search, run, write the report."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TextIO

import click

from gpulint.cli._request import Request
from gpulint.config import ConfigResolver, shown_path
from gpulint.lint import baseline
from gpulint.lint.checking import REPORT_URL, Checker
from gpulint.lint.engine import Options, Run, run
from gpulint.lint.results import Task
from gpulint.lint.selection import known_rules
from gpulint.reports import Report, plural, writer
from gpulint.reports.layout import colour_wanted, paint
from gpulint.rule import Rule
from gpulint.source.discovery import Discovery, discover
from gpulint.source.files import FileError, decode
from gpulint.source.sources import Sources


@dataclass(slots=True)
class _Outcome:
    """A run, and what only the report needs."""

    run: Run
    rules: tuple[type[Rule], ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    fixed_stdin: bytes | None = None
    known: int = 0  # findings that the baseline accepts
    gone: int = 0  # entries of the baseline that nothing matches


def perform(request: Request) -> int:
    """Run the command; the exit status. Raises `ConfigError` and click's usage errors."""
    _refuse_contradictions(request)
    if request.watch:
        from gpulint.cli._watch import watch

        return watch(request, check_once)
    return check_once(request)[0]


def check_once(request: Request) -> tuple[int, Run]:
    """Search, check and report once; the exit status and the run. Raises `ConfigError` and click's usage errors."""
    started = time.perf_counter()
    resolver = ConfigResolver(request.config, request.isolated, request.overrides)
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
    before = time.perf_counter()
    _write(request, outcome)
    outcome.run.stages["report"] = time.perf_counter() - before
    for path, complaint in outcome.run.complaints:
        _say(f"{shown_path(path)}: {complaint} Please report it at {REPORT_URL}")
    if request.verbose:
        _explain(request, found, outcome.run, time.perf_counter() - started)
    return _exit_code(request, outcome.run), outcome.run


def _refuse_contradictions(request: Request) -> None:
    if "-" in request.paths and len(request.paths) > 1:
        raise click.UsageError("- (standard input) cannot be checked together with files.")
    if request.stdin_filename is not None and not request.from_stdin:
        raise click.UsageError("--stdin-filename needs - (standard input) instead of paths.")
    if request.config is not None and request.isolated:
        raise click.UsageError("--config and --isolated exclude each other.")
    if request.add_ignore and (request.mode != "check" or request.from_stdin or request.write_baseline):
        raise click.UsageError(
            "--add-ignore goes with paths, and without --fix, --diff and --write-baseline."
        )
    if request.watch and (request.from_stdin or request.add_ignore or request.write_baseline):
        raise click.UsageError("--watch goes with paths, and without --add-ignore and --write-baseline.")
    if request.write_baseline and request.mode != "check":
        raise click.UsageError("--write-baseline goes without --fix and --diff.")
    if request.config is not None and not os.path.isfile(request.config):
        raise click.UsageError(f"--config: {request.config} does not exist.")


def _exit_code(request: Request, done: Run) -> int:
    code = done.exit_code
    if code != 2 and request.diff:
        code = 1 if done.changes else 0
    return 0 if code == 1 and request.exit_zero else code


def _check_files(request: Request, found: Discovery) -> _Outcome:
    if not found.targets and not found.problems and not request.quiet:
        _say("no Python files or notebooks found under the given paths")
    options = Options(
        request.mode, request.unsafe_fixes, request.jobs, not request.no_cache, request.cache_dir
    )
    with _progress(request) as progress:
        done = run(found, options, progress)
    configs = {id(target.config): target.config for target in found.targets}.values()
    rules = {rule.code: rule for config in configs for rule in known_rules(config)}
    return _Outcome(done, tuple(rules.values()))


def _check_stdin(request: Request, resolver: ConfigResolver) -> _Outcome:
    path = os.path.abspath(request.stdin_filename) if request.stdin_filename else "<stdin>"
    directory = os.path.dirname(path) if request.stdin_filename else os.getcwd()
    config = resolver.for_directory(directory)
    raw = sys.stdin.buffer.read()
    checker = Checker(
        (config,), "diff" if request.mode == "fix" else request.mode, request.unsafe_fixes, False
    )
    passes = checker.passes_gate(raw, path, 0)
    result = checker.check_bytes(raw, Task(path, 0, len(raw), passes))
    outcome = _Outcome(Run(), known_rules(config))
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
    outcome.run.add(path, result, config)
    return outcome


def _write_baseline(request: Request, done: Run) -> int:
    path = request.baseline or baseline.DEFAULT_FILE
    number = baseline.write(path, done.findings, Sources())
    if not request.quiet:
        _say(f"{plural(number, 'finding')} accepted in {path}")
    return 2 if done.exit_code == 2 else 0


def _compare(path: str, outcome: _Outcome) -> None:
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
        _say(f"wrote {plural(number, 'comment')} in {plural(len(written), 'file')}")
    for path, reason in failed.items():
        _say(f"{shown_path(path)}: {reason}")
    return 2 if failed or done.exit_code == 2 else 0


def _write(request: Request, outcome: _Outcome) -> None:
    done = outcome.run
    if request.diff:
        _write_diff(request, outcome)
        return
    if outcome.fixed_stdin is not None:  # standard output is for the fixed source, the report goes beside it
        sys.stdout.buffer.write(outcome.fixed_stdin)
        sys.stdout.flush()
    with _output(request, sys.stderr if outcome.fixed_stdin is not None else sys.stdout) as out:
        report = Report(
            done.findings,
            done.fixed,
            done.checked,
            outcome.rules,
            Sources(outcome.texts),
            request.unsafe_fixes,
            request.quiet,
            request.output_file is None and colour_wanted(out, request.colour),
            min(shutil.get_terminal_size().columns, 120) if out.isatty() else None,
        )
        _write_report(request, report, out)
    if outcome.known and not request.quiet:
        _say(f"{plural(outcome.known, 'finding')} accepted by the baseline not shown")
    if outcome.gone and not request.quiet:
        _say(
            f"{plural(outcome.gone, 'finding')} of the baseline no longer there; --write-baseline takes them out"
        )


def _write_report(request: Request, report: Report, out: TextIO) -> None:
    if request.statistics and request.output_format == "text":
        from gpulint.reports.lint.summary import statistics, summary

        paint([*statistics(report.findings), *summary(report)], out, report.colour)
        return
    writer(request.output_format)(report, out)
    if request.statistics:
        from gpulint.reports.lint.summary import statistics

        paint(statistics(report.findings), sys.stderr, colour_wanted(sys.stderr, request.colour))


@contextlib.contextmanager
def _output(request: Request, default: TextIO) -> Iterator[TextIO]:
    if request.output_file is None:
        yield default
        return
    try:
        with open(
            request.output_file, "w", encoding="utf-8", errors="surrogateescape", newline="\n"
        ) as stream:
            yield stream
    except OSError as error:
        raise click.UsageError(f"--output-file: {request.output_file}: {error.strerror or error}") from None


def _write_diff(request: Request, outcome: _Outcome) -> None:
    from gpulint.reports.lint.diff import diff_lines

    done = outcome.run
    with _output(request, sys.stdout) as out:
        colour = request.output_file is None and colour_wanted(out, request.colour)
        for path, before, after in done.changes:
            paint(diff_lines(shown_path(path), before, after), out, colour)
    unchecked = [finding for finding in done.findings if finding.code == "GPU000"]
    if unchecked:
        writer("concise")(Report(unchecked, quiet=True), sys.stderr)
    if not request.quiet:
        _say(f"would fix {plural(len(done.fixed), 'finding')} in {plural(len(done.changes), 'file')}")


def _explain(request: Request, found: Discovery, done: Run, seconds: float) -> None:
    """What --verbose adds, on standard error."""
    for path, reason in (*found.skipped, *done.skipped):
        _say(f"skipped {shown_path(path)}: {reason}")
    unreadable = {finding.filename for finding in done.findings if finding.code == "GPU000"}
    for path in (path for path in done.gated_out if path not in unreadable):
        _say(f"not analysed {shown_path(path)}: it has no words that a rule in force needs")
    for path, trace in done.internal_errors:
        _say(f"traceback for {shown_path(path)}:")
        if trace:
            print(trace, file=sys.stderr)
    files = f"{plural(done.checked, 'file')} checked, {done.from_cache} of them from the cache"
    stages = ", ".join(f"{name} {1000 * spent:.0f} ms" for name, spent in done.stages.items())
    _say(f"{files}; {1000 * seconds:.0f} ms in all ({stages})")


@contextlib.contextmanager
def _progress(request: Request) -> Iterator[_Progress | None]:
    if request.quiet or not sys.stderr.isatty():
        yield None
        return
    progress = _Progress()
    try:
        yield progress
    finally:
        progress.clear()


class _Progress:
    """One line on standard error, from the second second of a run on."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1.0
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 0.1
            self._shown = True
            filled = 24 * done // max(total, 1)
            print(
                f"\r{'━' * filled}{'╌' * (24 - filled)} {done}/{total} files",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _say(message: str) -> None:
    print(f"gpulint: {message}", file=sys.stderr)
