"""A trial from end to end: the script as it is, once more, then with fixes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpulint.atomic import target_of, write_atomic
from gpulint.runtime.parent.runner import Run
from gpulint.runtime.parent.source import evaluates
from gpulint.runtime.parent.verdict import verify
from gpulint.runtime.record.options import Bound, TrialOptions, join_lines
from gpulint.runtime.record.result import CUT_OFF, ENDED_WELL, LEFT_ALONE, UNFOLLOWED, LineFigures, RunResult
from gpulint.runtime.trying import overlay
from gpulint.source.edits import apply_edits
from gpulint.source.files import FileError, SourceFile, decode, read_bytes
from gpulint.trial.comparing import Baseline
from gpulint.trial.plan import MAX_RUNS, Attempt, Gain, Judged, Trial, TrialFix, gains_between, numbers, pays
from gpulint.trial.sorting import Outcome, Sorting

SEED = 20_251_122
PATIENCE = 3.0  # times the first run's time that a run with fixes may take, and a minute

# Runs what it is given; the label says for people what run this is.
Execute = Callable[[Run, str], RunResult]


def try_fixes(
    what: Run, fixes: Sequence[TrialFix], execute: Execute, max_runs: int = MAX_RUNS, max_drift: int = 0
) -> Trial:
    """Try the fixes on the program and sort them out; with none, run it once for what `verify` finds. Nothing is written.

    `execute` runs a program, as `runtime.parent.runner.run` does; `max_drift` bytes a step may be left. Raises ValueError for options that make no sense.
    """
    if max_runs < 3:
        raise ValueError("max_runs must be at least 3: two runs of the script as it is, one with fixes")
    try:
        files = {path: decode(path, read_bytes(path)) for path in dict.fromkeys(map(_path, fixes))}
    except FileError as error:
        return Trial(what.target, failure=f"a file with findings {error.message}")
    return _Trying(what, fixes, files, execute, max_runs, max_drift).run()


@dataclass
class _Trying:
    what: Run
    fixes: Sequence[TrialFix]
    files: dict[str, SourceFile]  # that a fix touches, by absolute path
    execute: Execute
    max_runs: int
    max_drift: int
    attempts: list[Attempt] = field(default_factory=list)
    outcomes: dict[tuple[int, ...], Outcome] = field(default_factory=dict)
    judged: dict[int, Judged] = field(default_factory=dict)
    baseline: Baseline = field(init=False)  # once the script has run twice as it is
    timed: list[RunResult] = field(default_factory=list)
    checked: bool = False

    def run(self) -> Trial:
        first = self._run(self._first_run(), (), "as it is")
        failure = self._failure(first)
        if failure:
            return self._trial(first, failure=failure)
        wanted = [fix for fix in self.fixes if self._may_be_tried(fix, first)]
        if not wanted:
            return self._trial(first)
        self.what = self._bound(first)
        again = self._run(self.what, (), "as it is, once more")
        if again.end.reason not in ENDED_WELL:
            return self._trial(
                first, again=again, failure=f"the second run of the unchanged script: {again.end.message}"
            )
        self.baseline = Baseline(first, again)
        sorting = self._sort(wanted)
        return self._concluded(first, again, sorting)

    # -- the runs ----------------------------------------------------------------------------------------------

    def _first_run(self) -> Run:
        places = [(f.filename, f.line, f.column) for fix in self.fixes for f in fix.findings]
        lines = join_lines(places)
        return replace(
            self.what,
            lines=lines,
            awaited=lines,
            evaluates=evaluates(self.what.files()),
            cut_epochs=False,
            capture=True,
            trial=TrialOptions(SEED),
        )

    def _bound(self, first: RunResult) -> Run:
        """What the later runs are: they end where the first did, or by themselves as it did."""
        bounds = (
            Bound(rank.rank, rank.process, rank.recording.position)
            for rank in first.ranks
            if rank.recording is not None and rank.end.reason == "stopped"
        )
        run = replace(self._first_run(), lines=(), awaited=())
        if run.timeout is None:
            run = replace(run, timeout=PATIENCE * first.seconds + 60)
        return replace(run, trial=TrialOptions(SEED, True, tuple(bounds)))

    def _run(self, what: Run, fixes: Sequence[TrialFix], label: str) -> RunResult:
        texts, _ = self._fixed(fixes)
        with tempfile.TemporaryDirectory(prefix="gpulint-trial-") as folder:
            home = os.path.realpath(folder)
            encoded = {path: self.files[path].encode(text) for path, text in texts.items()}
            variables = overlay.write(home, encoded, what.environment)
            environment: Mapping[str, str] = {"PYTHONHASHSEED": "0", **what.environment, **variables}
            result = self.execute(replace(what, environment=environment), label)
        self.attempts.append(Attempt(label, numbers(fixes), result.seconds, ""))
        if result.end.reason == "interrupted":
            raise KeyboardInterrupt
        return result

    @property
    def _left(self) -> int:
        return self.max_runs - len(self.attempts)

    # -- before anything is tried --------------------------------------------------------------------------------

    def _failure(self, first: RunResult) -> str:
        """Why nothing can be compared with this run; empty where something can."""
        if first.end.reason not in ENDED_WELL:
            return first.end.message
        if not any(rank.steps() for rank in first.ranks):
            return f"{first.end.message}; no step was sampled, so there is nothing to compare"
        if not self.fixes:
            return ""
        if any(rank.end.reason == "killed" for rank in first.ranks):
            return "the script ended one of its workers before that could report what it computed"
        if any(rank.recording is None for rank in first.ranks):
            return "what the script computes could not be written down; torch 2.4 or newer is needed"
        return ""

    def _may_be_tried(self, fix: TrialFix, first: RunResult) -> bool:
        prevented = self._why_not_written(fix)
        if prevented:
            self.judged[fix.number] = Judged(fix, "not tried", prevented)
            return False
        places = {(one.filename, one.line, one.column) for one in fix.findings}
        processes = (*first.ranks, *first.others)
        seen = [line for one in processes for line in one.lines if _place(line) in places]
        if seen and not any(line.hits or line.hits is None for line in seen):
            text = "its line did not run in the sampled run; run more (--steps, --reach)"
            self.judged[fix.number] = Judged(fix, "not reached", text)
            return False
        return True

    def _why_not_written(self, fix: TrialFix) -> str:
        """Why the fix's file would not be written; empty where it would be."""
        if not self.files[_path(fix)].survives_rewriting:
            return "the encoding of its file is not one-to-one: writing would change other bytes too"
        try:
            target_of(_path(fix))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _fixed(self, fixes: Sequence[TrialFix]) -> tuple[dict[str, str], list[TrialFix]]:
        """The text of each file with the fixes in it, and those that are not in it because they overlap another."""
        texts: dict[str, str] = {}
        lost: list[TrialFix] = []
        for path, source in self.files.items():
            here = [fix for fix in fixes if _path(fix) == path]
            texts[path], taken = apply_edits(source.text, [fix.first for fix in here], unsafe=True)
            lost += [fix for fix in here if not any(fix.first is one for one in taken)]
        return texts, lost

    # -- trying --------------------------------------------------------------------------------------------------

    def _sort(self, wanted: Sequence[TrialFix]) -> Sorting:
        _, apart = self._fixed(wanted)
        sorting = Sorting(self._attempt, lambda: self._left)
        sorting.sort([fix for fix in wanted if fix not in apart], apart)
        return sorting

    def _attempt(self, fixes: Sequence[TrialFix]) -> Outcome | None:
        """What comes of some fixes; None where no run is left for it. Runs nothing twice."""
        key = tuple(sorted(numbers(fixes)))
        if key not in self.outcomes:
            if self._left <= 0:
                return None
            run = self._run(self.what, fixes, self._label(fixes))
            place = len(self.attempts) - 1
            self.outcomes[key] = outcome = self._judge(run, fixes)
            self.attempts[place] = replace(self.attempts[place], outcome=outcome.status)
        return self.outcomes[key]

    def _label(self, fixes: Sequence[TrialFix]) -> str:
        if len(fixes) == 1:
            fix = fixes[0]
            shown = fix.shown
            cell = f":cell {shown.cell}" if shown.cell is not None else ""
            return f"with {fix.codes}, {os.path.basename(shown.filename)}{cell}:{shown.line}"
        every = "all " if len(fixes) == len(self.fixes) else ""
        return f"with {every}{len(fixes)} fixes"

    def _judge(self, run: RunResult, fixes: Sequence[TrialFix]) -> Outcome:
        by_time = any(fix.is_about_time for fix in fixes)
        broken = self.baseline.broken(run)
        if broken:
            return Outcome("breaks", broken, run=run)
        changed = self.baseline.difference(run)
        if changed and self._has_noise_after_all():
            changed = self.baseline.difference(run)
        if changed and not self.baseline.is_exact:
            changed = self._seen_again(fixes, changed)
        if changed:
            return Outcome("changes the result", changed, run=run)
        saved = self._saved(run, by_time)
        if pays(saved, by_time) and not pays(saved, by_time=False):
            self._time_again()
            saved = self._saved(run, by_time)
        return Outcome("pays" if pays(saved, by_time) else "changes nothing", "", saved, run)

    def _saved(self, run: RunResult, by_time: bool) -> tuple[Gain, ...]:
        on_gpu = any(rank.environment.device == "cuda" for rank in run.ranks)
        unchanged = [self.baseline.first, self.baseline.again, *self.timed]
        return gains_between(unchanged, run, by_time or on_gpu)

    def _has_noise_after_all(self) -> bool:
        """Once, and on a GPU: whether a third run of the unchanged script differs from the first although the second did not. What
        is added up in no fixed order differs now and then."""
        first = self.baseline.first
        on_gpu = any(rank.environment.device == "cuda" for rank in first.ranks)
        if self.checked or self._left <= 0 or not on_gpu or not self.baseline.is_exact:
            return False
        self.checked = True
        third = Baseline(first, self._run(self.what, (), "as it is, a third time"))
        if third.again.end.reason not in ENDED_WELL or third.is_exact:
            return False
        self.baseline = third
        return True

    def _seen_again(self, fixes: Sequence[TrialFix], changed: str) -> str:
        """What the program computes otherwise with the fixes in another run too, where it differs from itself: of two unchanged
        runs the noise is known by chance, and what a fix changes it changes each time."""
        if self._left <= 0:
            return changed
        again = self._run(self.what, fixes, f"{self._label(fixes)}, once more")
        return changed if self.baseline.broken(again) else self.baseline.difference(again)

    def _time_again(self) -> None:
        """Once: the machine may have become faster meanwhile, and with it every run since."""
        if not self.timed and self._left > 0:
            self.timed.append(self._run(self.what, (), "as it is, for its time"))

    # -- the end -------------------------------------------------------------------------------------------------

    def _concluded(self, first: RunResult, again: RunResult, sorting: Sorting) -> Trial:
        blind = self.baseline.is_blind
        self.judged |= {number: self._seen(one, blind) for number, one in sorting.judged.items()}
        kept = [fix for fix in sorting.kept if self.judged[fix.number].status == "pays"]
        final = sorting.final if len(kept) == len(sorting.kept) else self._attempt(kept) if kept else None
        texts, _ = self._fixed(kept)
        originals = {path: source.text for path, source in self.files.items()}
        return self._trial(
            first,
            blind,
            again=again,
            after=final.run if final is not None else None,
            gains=final.gains if final is not None else (),
            noise=self.baseline.noise(),
            originals=originals,
            texts={path: text for path, text in texts.items() if text != originals[path]},
        )

    @staticmethod
    def _seen(one: Judged, blind: bool) -> Judged:
        """What a run has shown, with what it cannot show."""
        if blind and one.status == "pays" and not one.fix.is_safe:
            return replace(one, status="cannot be compared", text=UNSEEN)
        because = one.fix.fix.unsafe_because
        if one.status in ("changes the result", "breaks") and because and not one.fix.is_safe:
            return replace(one, text=f"{one.text} (its doubt: {because})")
        return one

    def _trial(self, before: RunResult, blind: bool = False, **known: object) -> Trial:
        judged = tuple(self.judged[fix.number] for fix in self.fixes if fix.number in self.judged)
        notes = (note for one in (*before.ranks, *before.others) for note in one.notes)
        partly = dict.fromkeys(note for note in notes if note.endswith((UNFOLLOWED, CUT_OFF, LEFT_ALONE)))
        doubts = (*([BLIND] if blind else []), *partly)
        last = known.get("after") or before
        left = None if known.get("failure") else verify(self.what.target, last, (), self.max_drift)  # type: ignore[arg-type]
        attempts = tuple(self.attempts)
        return Trial(self.what.target, judged, before, doubts=doubts, attempts=attempts, left=left, **known)  # type: ignore[arg-type]


BLIND = (
    "The script computes something else each time it runs: whether a fix changes its result cannot be told. "
    "Seed what it draws (also generators of its own)."
)
UNSEEN = "it pays, and is not known to be safe; the script differs from itself too much to see whether its result changes"


def _path(fix: TrialFix) -> str:
    return os.path.abspath(fix.file)


def _place(line: LineFigures) -> tuple[str, int, int]:
    return line.file, line.line, line.column


# -- writing what pays: every file whole, and none that has changed since it was read -------------------------------


class NotWritten(Exception):
    """The fixes could not be written. The message is one sentence; what it does not name is unchanged."""


def apply(trial: Trial) -> Trial:
    """Write the files as the fixes that pay make them; the trial with those files in `written`.

    Raises `NotWritten` where a file has changed since the trial began, or cannot be written.
    """
    return write(trial, encoded(trial))


def encoded(trial: Trial) -> dict[str, bytes]:
    """What would be written, by path. Raises `NotWritten` where a file has changed or cannot be read."""
    ready: dict[str, bytes] = {}
    for path, text in trial.texts.items():
        try:
            source = decode(path, read_bytes(path))
            ready[path] = source.encode(text)
        except FileError as error:
            raise NotWritten(f"{path}: {error.message}; nothing was written") from None
        if source.text != trial.originals[path]:
            raise NotWritten(f"{path} has changed since the trial began; nothing was written, run again")
    return ready


def write(trial: Trial, ready: Mapping[str, bytes]) -> Trial:
    """Write files, one after the other; the trial with them in `written`. Raises `NotWritten`, which names those written before."""
    written: list[str] = []
    for path, data in ready.items():
        try:
            write_atomic(path, data)
        except OSError as error:
            done = f"; written before that: {', '.join(written)}" if written else ""
            raise NotWritten(f"{path}: {error.strerror or error}{done}") from None
        written.append(path)
    return replace(trial, written=tuple(written))
