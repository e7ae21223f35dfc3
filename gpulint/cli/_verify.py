"""What `gpulint verify` does with its options: findings, run, verdicts, reports; with --fix, fixes tried, told, and written where
they pay."""

from __future__ import annotations

import contextlib
import glob
import itertools
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gpulint.cli._dispatch import while_read
from gpulint.cli._errors import as_error, say
from gpulint.cli._options import (
    Given,
    leave_for_job,
    print_last_words,
    refuse,
    say_what_went_to,
    taken,
    tell,
    write_report,
)
from gpulint.config import ConfigResolver, shown_path
from gpulint.findings import DIAGNOSTICS, Confidence, Finding
from gpulint.lint.selection import BUILT_IN, known_rules, refuse_unknown
from gpulint.reports import trial as of_trial
from gpulint.reports.markdown import markdown
from gpulint.reports.verify import as_json, document
from gpulint.reports.verify.gate import of_gate
from gpulint.runtime.parent.runner import OnProgress, Run, run
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.peaks import Limits
from gpulint.runtime.record.result import RunResult, count_steps, said_steps
from gpulint.source.files import is_notebook
from gpulint.testing.baselines import BadBaseline
from gpulint.testing.gate import check, run_limited, subject_of
from gpulint.trial.plan import Tell, Trial, fixes_of
from gpulint.trial.trying import NotWritten, apply, try_fixes
from gpulint.verifying import both, least_confidence, program_findings, verification_of, with_claims

if TYPE_CHECKING:
    from gpulint.cli._notebook import CellScript


class Request(Given):
    """The options of the command: what is run, what that is held against, and the rest. `place` is where the script of a
    notebook's cells counts as lying."""

    run: Run
    limits: Limits
    place: str = ""

    @property
    def named(self) -> Run:
        """What is run, with its steps and units. Raises ValueError for functions that are not in it."""
        return self.run.naming(self.step, self.unit)

    @property
    def title(self) -> str:
        """What runs, for people."""
        return shown_path(self.place.removesuffix(".py")) if self.place else self.run.target


def request_of(launch: tuple[str, ...], given: dict[str, Any]) -> Request:
    """The request that the options make, by the names of what they set."""
    path = given.pop("snapshot")
    snapshot = os.path.abspath(path) if path else ""
    run = Run(launch=launch, capture=not given["show_output"], snapshot=snapshot, **taken(Run, given))
    return Request(run=run, limits=Limits(**taken(Limits, given)), **given)


def perform(request: Request) -> int:
    """Run the script, or try its fixes, print what was found, write the reports; the exit status."""
    _refuse_nonsense(request)
    if not request.quiet:
        say_what_went_to(request.run.target, request.run.arguments)
    if is_notebook(request.run.target) and not request.run.module:
        with _of_cells(request) as (script, cells):
            if request.fix:
                return _tried(script, cells.apply, cells.told, cells.as_told)
            return _verified(script, cells.as_measured)
    if request.fix:
        return _tried(request, apply, tuple, lambda trial: trial)
    return _verified(request, lambda verification: verification)


@contextlib.contextmanager
def _of_cells(request: Request) -> Iterator[tuple[Request, CellScript]]:
    """The request for the script of a notebook's cells."""
    from gpulint.cli._notebook import cell_script

    with cell_script(request.run.target) as cells:
        say(cells.note())
        paths = [cells.home, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths)}
        run = replace(request.run, target=cells.path, cwd=cells.home, environment=environment)
        yield request.but(run=run, place=cells.place), cells


def _verified(request: Request, told: Callable[[Verification], Verification]) -> int:
    verification = _measure(request, told)
    made = of_gate if request.output_format == "markdown" else document
    with while_read():
        tell(request, lambda: made(verification), lambda: as_json(verification))
    if verification.gate is not None:
        leave_for_job("GITHUB_STEP_SUMMARY", markdown(of_gate(verification)))
    _say_how_it_ended(request, verification)
    written = _say_snapshot(request)
    write_report(request.report, lambda: document(verification))
    return verification.exit_code if written else 2


def _say_snapshot(request: Request) -> bool:
    """Name the snapshots that the run has left; whether there is one where one was asked for."""
    if not request.run.snapshot:
        return True
    found = [path for path in _snapshots(request.run.snapshot) if os.path.exists(path)]
    for path in found:
        said = shown_path(path)
        say(f"snapshot written to {said}: gpulint snapshot {said} reads it")
    if not found:
        say("no snapshot was written: the script used no GPU")
    return bool(found)


def _snapshots(path: str) -> list[str]:
    """The file, and those of the ranks."""
    stem, extension = os.path.splitext(os.path.abspath(path))
    return [stem + extension, *sorted(glob.glob(f"{glob.escape(stem)}-rank*{extension}"))]


def _refuse_nonsense(request: Request) -> None:
    limits, run, fix = request.limits, request.run, request.fix
    limited = limits.on_peak or limits.exclusive or limits.beside_peak
    refuse(
        (not fix and request.dry_run, "--dry-run is about fixes that are tried: use it with --fix."),
        (
            not fix and not limited and request.output_format == "markdown",
            "--output-format markdown is about fixes that are tried, or limits: use it with --fix, --max-peak or --baseline.",
        ),
        (
            fix and limited,
            "--max-peak, --baseline and --exclusive hold one run against limits: use them without --fix.",
        ),
    )
    try:
        check(limits, run.device)
    except BadBaseline as error:
        known = limits.write or os.path.exists(limits.baseline)
        hint = "" if known else f": {_writing(request)}"
        raise click.UsageError(f"{error}{hint}") from error
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
    not_alike = "cannot be used with --fix, which compares what several runs do and print."
    hint = "; for a module's name use -m" if "/" not in run.target else ""
    refuse(
        (fix and request.show_output, f"--show-output {not_alike}"),
        (fix and run.cut_epochs, f"--cut-epochs {not_alike}"),
        (fix and run.snapshot, "--snapshot cannot be used with --fix, which runs the script several times."),
        (
            request.show_output and request.output_format == "json",
            "--show-output would mix the script's output into the JSON; leave one out.",
        ),
        (not run.module and not os.path.exists(run.target), f"there is no script {run.target}{hint}."),
    )
    with as_error(click.UsageError, ValueError):
        _ = request.named
    for path in _snapshots(run.snapshot) if run.snapshot else ():  # of an earlier run
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _measure(request: Request, as_told: Callable[[Verification], Verification]) -> Verification:
    """`as_told` names places as people know them: limits and baselines do too."""
    findings = _chosen_findings(request)
    least = _least(request)

    def measure(what: Run, told: OnProgress) -> Verification:
        with _following(request, what) as shown:
            found = verification_of(what, findings, request.max_drift, both(told, shown), least)
        return as_told(found)

    limits = request.limits
    target = request.place.removesuffix(".py") or request.run.target
    subject = subject_of(target, request.run.arguments, request.run.module, limits.baseline)
    return run_limited(request.named, limits, subject, _writing(request), measure)


@contextlib.contextmanager
def _following(request: Request, what: Run) -> Iterator[OnProgress | None]:
    """What shows how far a run is; None where nobody wants to know."""
    if request.quiet:
        yield None
        return
    from gpulint.reports.verify.progress import following

    with following(replace(what, target=request.title), sys.stderr, request.colour) as on_progress:
        yield on_progress


def _writing(request: Request) -> str:
    """The command that writes the peaks which a baseline lacks."""
    device = ["--device", "cpu"] if request.run.device == "cpu" else []
    module = ["-m"] if request.run.module else []
    target = shown_path(request.place.removesuffix(".py")) if request.place else request.run.target
    options = ["--baseline", request.limits.baseline, "--write-baseline", *device, *request.run.launch]
    return shlex.join(["gpulint", "verify", *options, *module, target, *request.run.arguments])


# -- fixes ---------------------------------------------------------------------------------------------------


def _tried(
    request: Request, apply: Callable[[Trial], Trial], names: Tell, as_told: Callable[[Trial], Trial]
) -> int:
    """`apply` writes what pays; `names` and `as_told` say of findings and of the trial what people know them as."""
    fixes = fixes_of(_chosen_findings(request), names)
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
    _tell_trial(request, told)
    if problem:
        sys.stdout.flush()
        say(problem)
    write_report(request.report, partial(of_trial.document, told, request.dry_run))
    return trial.exit_code


def _executing(request: Request) -> Callable[[Run, str], RunResult]:
    """What runs the program, and shows how far it is."""
    counted = itertools.count(1)

    def execute(what: Run, label: str) -> RunResult:
        if not request.quiet:
            say(f"run {next(counted)} of at most {request.max_runs}: {label}")
        with _following(request, what) as on_progress:
            return run(what, on_progress)

    return execute


def _tell_trial(request: Request, trial: Trial) -> None:
    made = partial(of_trial.document, trial, request.dry_run)
    with while_read():
        tell(request, made, partial(of_trial.as_json, trial))
    leave_for_job("GITHUB_STEP_SUMMARY", markdown(made()))
    if trial.failure and trial.before is not None:
        print_last_words(trial.before.stderr or trial.before.end.traceback)
        say(f"{trial.failure}; no fix was tried")


# -- findings ------------------------------------------------------------------------------------------------


def _least(request: Request) -> Confidence:
    """From which confidence on findings are shown unproven. What a file of findings says was asked for."""
    if request.findings is not None and request.confidence is None:
        return Confidence.LOW
    return least_confidence(request.confidence, request.run.target, request.run.module)


def read_findings(path: str) -> list[Finding]:
    """The findings in a file that `--output-format json` wrote; "-" is standard input.

    Raises click.UsageError where it is something else.
    """
    named, wrong = f"--findings {path}", partial(as_error, click.UsageError)
    with (
        wrong(OSError, of=named),
        wrong(ValueError, of=f"{named}: is not JSON"),
        contextlib.nullcontext(sys.stdin) if path == "-" else open(path, encoding="utf-8") as source,
    ):
        data = json.load(source)
    try:
        return [Finding.from_json(item) for item in data]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = "is not what gpulint --output-format json writes"
        raise click.UsageError(f"{named}: {message} ({type(error).__name__}: {error}).") from error


def _chosen_findings(request: Request) -> list[Finding]:
    """The findings to judge: the linter's, or those of a file, as far as they are selected."""

    def named(code: str, prefixes: tuple[str, ...]) -> bool:
        return any(prefix == "ALL" or code.startswith(prefix) for prefix in prefixes)

    if request.findings is not None:
        findings = with_claims(read_findings(request.findings))
    else:
        findings = program_findings(request.named, request.place)
    folder = os.getcwd() if request.run.module else os.path.dirname(os.path.abspath(request.run.target))
    rules = known_rules(ConfigResolver().for_directory(folder))
    names = {**BUILT_IN, **{rule.code: rule.name for rule in rules}}
    names |= {finding.code: finding.name for finding in findings}
    refuse_unknown("--select", request.select, names)
    refuse_unknown("--ignore", request.ignore, names)
    judged = [code for code in names if not code.startswith(DIAGNOSTICS)]
    if all(named(code, request.ignore) for code in judged) or (
        request.select and not any(named(code, request.select) for code in judged)
    ):
        raise click.UsageError("--select and --ignore leave no rule whose findings a run could judge.")
    kept = [f for f in findings if not f.is_diagnostic and not named(f.code, request.ignore)]
    return [f for f in kept if not request.select or named(f.code, request.select)]


# -- output --------------------------------------------------------------------------------------------------


def _say_how_it_ended(request: Request, verification: Verification) -> None:
    """The script's own last words, where it failed: its traceback, and one line of ours."""
    if not verification.failed:
        return
    end = verification.run.end
    if not request.show_output and end.reason != "no-torch":
        print_last_words((verification.run.stderr or "").rstrip() or end.traceback)
    counts = [count_steps(rank.samples, sampled=True) for rank in verification.run.ranks]
    sampled = max(counts, default={}, key=lambda one: sum(one.values()))
    so_far = (
        f"; {said_steps(sampled)} sampled until then" if any(sampled.values()) else "; nothing was measured"
    )
    say(f"{end.message}{so_far}")
    if request.quiet and end.reason == "exit":
        say_what_went_to(request.run.target, request.run.arguments)
