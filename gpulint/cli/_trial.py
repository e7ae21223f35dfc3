"""What `gpulint verify --fix` does: fixes tried, told, and written where they pay."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpulint.cli import _verify
from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import say
from gpulint.cli._job import summarize
from gpulint.cli._options import print_last_words, tell, write_report
from gpulint.cli._verify import Request
from gpulint.reports.markdown import markdown
from gpulint.reports.trial import as_json, document
from gpulint.runtime.parent.runner import Run, run
from gpulint.runtime.record.result import RunResult
from gpulint.source.notebooks import is_notebook
from gpulint.trial.plan import Tell, Trial, fixes_of
from gpulint.trial.trying import NotWritten, apply, try_fixes


def perform(request: Request) -> int:
    """Try the fixes, write those that pay unless it is a dry run, tell of it; the exit status."""
    _verify.prepare(request)
    if is_notebook(request.run.target) and not request.run.module:
        with _verify.of_cells(request) as (script, cells):
            return _tried(script, cells.apply, cells.told, cells.as_told)
    return _tried(request, apply, tuple, lambda trial: trial)


def _tried(
    request: Request,
    apply: Callable[[Trial], Trial],
    names: Tell,
    as_told: Callable[[Trial], Trial],
) -> int:
    """`apply` writes what pays; `names` and `as_told` say of findings and of the trial what people know them as."""
    fixes = fixes_of(_verify.chosen_findings(request), names)
    try:
        execute = _executing(request)
        trial = try_fixes(request.named, fixes, execute, request.max_runs, max_drift=request.max_drift)
    except KeyboardInterrupt:
        print("\ngpulint: interrupted; nothing was written", file=sys.stderr)
        return 130
    problem = ""
    if trial.paying and not request.dry_run:
        try:
            trial = apply(trial)
        except NotWritten as error:
            problem = str(error)
    told = as_told(trial)
    _tell(request, told)
    if problem:
        sys.stdout.flush()
        say(problem)
    write_report(request.report, partial(document, told, request.dry_run))
    return trial.exit_code


def _executing(request: Request) -> Callable[[Run, str], RunResult]:
    """What runs the program, and shows how far it is."""
    counted = itertools.count(1)

    def execute(what: Run, label: str) -> RunResult:
        if request.quiet:
            return run(what)
        from gpulint.reports.verify.progress import following

        say(f"run {next(counted)} of at most {request.max_runs}: {label}")
        with following(replace(what, target=request.title), sys.stderr, request.colour) as on_progress:
            return run(what, on_progress)

    return execute


# -- telling -------------------------------------------------------------------------------------------------


def _tell(request: Request, trial: Trial) -> None:
    made = partial(document, trial, request.dry_run)
    with while_read():
        tell(request, made, partial(as_json, trial))
    summarize(markdown(made()))
    if trial.failure and trial.before is not None:
        print_last_words(trial.before.stderr or trial.before.end.traceback)
        say(f"{trial.failure}; no fix was tried")
