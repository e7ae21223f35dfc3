"""What `gpulint check` does with its options: search, run, write the report."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import click

from gpulint.bounds import is_inside, project_around
from gpulint.cli._errors import say
from gpulint.cli._reporting import Outcome, Request, explain, progress, write
from gpulint.config import Config, ConfigError, ConfigResolver, Glob, shown_path
from gpulint.findings import Finding
from gpulint.lint import baseline
from gpulint.lint.checking import Checker
from gpulint.lint.engine import Options, Run, run
from gpulint.lint.results import REPORT_URL, Task
from gpulint.lint.selection import BUILT_IN, Selection, known_rules
from gpulint.reports import place, plural
from gpulint.source.discovery import DEFAULT_EXCLUDES, Discovery, discover
from gpulint.source.files import FileError, decode
from gpulint.source.program import UNKNOWN_TOP, top_of
from gpulint.source.sources import Sources

_MOST_FILES = 20
_MOST_SHOWN = 20


def perform(request: Request) -> int:
    """Run the command; the exit status. Raises `ConfigError` and click's usage errors."""
    _refuse_contradictions(request)
    if request.show_settings:
        return _show_settings(request)
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
    if request.fix_only and not request.diff:
        _leave_only_what_prevents(outcome.run)
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
    if "-" in request.paths and len(request.paths) > 1:
        raise click.UsageError("- (standard input) cannot be checked together with files.")
    if request.stdin_filename is not None and not request.from_stdin:
        raise click.UsageError("--stdin-filename needs - (standard input) instead of paths.")
    if request.config.file is not None and request.isolated:
        raise click.UsageError("--config with a file and --isolated exclude each other.")
    fixing = request.fix or request.fix_only or request.diff
    if request.add_ignore and (fixing or request.from_stdin or request.write_baseline):
        raise click.UsageError(
            "--add-ignore goes with paths, and without --fix, --diff and --write-baseline."
        )
    if request.watch and (request.from_stdin or request.add_ignore or request.write_baseline):
        raise click.UsageError("--watch goes with paths, and without --add-ignore and --write-baseline.")
    if request.write_baseline and fixing:
        raise click.UsageError("--write-baseline goes without --fix and --diff.")
    if (request.show_files or request.show_settings) and request.from_stdin:
        raise click.UsageError("--show-files and --show-settings go with paths, not with standard input.")


def _started_in(request: Request) -> str:
    """The directory whose configuration says what the whole command does: how to report, whether to fix."""
    return os.path.dirname(os.path.abspath(request.stdin_filename)) if request.stdin_filename else os.getcwd()


def _show_settings(request: Request) -> int:
    path = request.paths[0] if request.paths else os.curdir
    click.echo(settings_text(path, request.resolver), nl=False)
    return 0


def _show_files(request: Request) -> int:
    from gpulint.reports.layout import printable

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
        request.mode, bool(request.unsafe_fixes), request.jobs, not request.no_cache, request.cache_dir
    )
    with progress(request) as following:
        done = run(found, options, following)
    configs = {id(target.config): target.config for target in found.targets}.values()
    rules = {rule.code: rule for config in configs for rule in known_rules(config)}
    # What could not be read, or must not be, is not shown either.
    return Outcome(done, tuple(rules.values()), {problem.path: "" for problem in found.problems})


def _check_stdin(request: Request, resolver: ConfigResolver) -> Outcome:
    path = os.path.abspath(request.stdin_filename) if request.stdin_filename else "<stdin>"
    config = resolver.for_directory(_started_in(request))
    raw = sys.stdin.buffer.read()
    top = top_of([path]) if request.stdin_filename else UNKNOWN_TOP
    checker = Checker(
        (config,), "diff" if request.mode == "fix" else request.mode, bool(request.unsafe_fixes), False, top
    )
    passes = checker.passes_gate(raw, path, 0)
    result = checker.check_bytes(raw, Task(path, 0, len(raw), passes))
    outcome = Outcome(Run(), known_rules(config))
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
        say(f"{plural(number, 'finding')} accepted in {path}")
    return 2 if done.exit_code == 2 else 0


def _refuse_baseline_elsewhere(config: Config) -> None:
    """A repository says which file of its own is written, and of no other."""
    project = project_around(config.root) or config.root
    if config.baseline is not None and not is_inside(os.path.realpath(config.baseline), project):
        message = f"{config.baseline} lies outside of {project}; to write it, name it with --baseline"
        raise ConfigError(f"{config.origin('baseline')}: {message}")


def _leave_only_what_prevents(done: Run) -> None:
    """After --fix-only: of what is left only the files that could not be read or written are told."""
    done.findings = [finding for finding in done.findings if finding.code == "GPU000"]
    done.failing = sum(map(done.fails, done.findings))


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


# -- the settings in force -------------------------------------------------------------------------------------


def settings_text(path: str, resolver: ConfigResolver) -> str:
    """The settings in force for the file or directory at `path`, as a gpulint.toml. Raises `ConfigError`."""
    absolute = os.path.abspath(path)
    if not os.path.exists(absolute):
        raise ConfigError(f"{path}: no such file or directory")
    directory = absolute if os.path.isdir(absolute) else os.path.dirname(absolute)
    selection = Selection(resolver.for_directory(directory))
    config = selection.config
    enabled = sorted(selection.codes_for(absolute) - set(BUILT_IN))
    source = shown_path(config.source) if config.source else "no configuration file"
    lines = [f"# {source}; project root {config.root}", *_settings(config, enabled)]
    for name, table in _tables(config, selection, absolute).items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _settings(config: Config, enabled: list[str]) -> Iterable[str]:
    exclude = sorted(DEFAULT_EXCLUDES) if config.exclude is None else _patterns(config, config.exclude)
    settings: dict[str, Any] = {
        "select": enabled,
        "exclude": exclude,
        "extend-exclude": _patterns(config, config.extend_exclude),
        "respect-gitignore": config.respect_gitignore,
        "confidence": config.confidence.value,
        "fail-on": config.fail_on,
        "rules": [os.path.relpath(rule, config.root) for rule in config.rules],
        "fix": config.fix,
        "fix-only": config.fix_only,
        "unsafe-fixes": config.unsafe_fixes,
        "show-fixes": config.show_fixes,
        "unfixable": list(config.unfixable),
        "output-format": config.output_format,
    }
    if config.fixable is not None:
        settings["fixable"] = list(config.fixable)
    if config.baseline is not None:
        settings["baseline"] = os.path.relpath(config.baseline, config.root)
    if config.target_torch is not None:
        settings["target-torch"] = config.target_torch
    return (f"{name} = {_value(value)}" for name, value in settings.items())


def _tables(config: Config, selection: Selection, path: str) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        "per-file-ignores": {_pattern(config, glob): list(codes) for glob, codes in config.per_file_ignores},
        "severity": {code: severity.value for code, severity in config.severity.items()},
    }
    for code, options in selection.rules_for(path).options.items():
        tables[f"options.{code}"] = dict(options)
    return {name: table for name, table in tables.items() if table}


def _patterns(config: Config, globs: Iterable[Glob]) -> list[str]:
    return [_pattern(config, glob) for glob in globs]


def _pattern(config: Config, glob: Glob) -> str:
    """The pattern as it would stand in a configuration at the project's root."""
    if glob.base == config.root or "/" not in glob.pattern.rstrip("/"):
        return glob.pattern
    return os.path.join(os.path.relpath(glob.base, config.root), glob.pattern.lstrip("/")).removeprefix("./")


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        short = ", ".join(map(_value, value))
        if len(short) < 90:
            return f"[{short}]"
        return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


# -- the files that a traceback names, for `gpulint oom` --------------------------------------------------------


def findings_in(files: Iterable[str]) -> list[Finding]:
    """What is found in those of the files that are here; nothing where a configuration is wrong."""
    here = [file for file in dict.fromkeys(files) if os.path.isfile(file)][:_MOST_FILES]
    if not here:
        return []
    try:
        found = discover(here, ConfigResolver())
        checked = run(found, Options(jobs=1, cache=False))
    except ConfigError:
        return []
    return [finding for finding in checked.findings if not finding.is_diagnostic]


def lines_of(findings: list[Finding], frames: Collection[tuple[str, int]]) -> list[str]:
    """The findings, a line each, those on a line of a traceback first."""
    raised = {(os.path.abspath(file), line) for file, line in frames}

    def is_raised(finding: Finding) -> bool:
        rows = range(finding.line, finding.end_line + 1)
        return any((os.path.abspath(finding.filename), row) in raised for row in rows)

    ordered = sorted(findings, key=lambda finding: not is_raised(finding))
    lines = ["", f"in the files that the tracebacks name, gpulint has {plural(len(findings), 'finding')}:"]
    for finding in ordered[:_MOST_SHOWN]:
        mark = " (a line of the traceback)" if is_raised(finding) else ""
        where = f"{shown_path(finding.filename)}:{place(finding)}"
        lines.append(f"  {where}: {finding.code} {finding.message}{mark}")
    if len(findings) > _MOST_SHOWN:
        lines.append(f"  ... and {len(findings) - _MOST_SHOWN} more; gpulint FILE shows them")
    return lines
