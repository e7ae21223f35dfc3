"""A run over files: cache, gate, parallel processes, and the findings of all of them together."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gpulint.bounds import is_project_root
from gpulint.config import Config
from gpulint.findings import Finding, Severity
from gpulint.lint.cache import ABSENT, Cache, Foreign, run_digest
from gpulint.lint.checking import Checker, Mode
from gpulint.lint.results import OLDER, FileResult, Task, crashed, diagnostic
from gpulint.lint.selection import rule_files
from gpulint.source.discovery import Discovery
from gpulint.source.files import FileError, content_hash, hash_of_every, read_bytes
from gpulint.source.program import top_of

# What starting processes costs, in bytes of source parsed in the same time. A file that does not pass the
# gate only has its syntax checked, which is so many times cheaper.
_WORTH_PROCESSES: Final = 120_000
_GATED_OUT_DISCOUNT: Final = 50
_CHUNKS_PER_JOB: Final = 8
_ORDER: Final = {"info": 0, "warning": 1, "error": 2, "never": 3}


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. `jobs` 0 stands for one process a core; `cache_dir` None for the user's folder of caches."""

    mode: Mode = "check"
    unsafe: bool = False
    jobs: int = 0
    cache: bool = True
    cache_dir: str | None = None


@dataclass(slots=True)
class Run:
    """What a run gave. `checked` counts files that could be read; `failing` findings at or above `fail-on`; `missing` the
    paths that were named and are not there."""

    findings: list[Finding] = field(default_factory=list)
    fixed: list[Finding] = field(default_factory=list)
    changes: list[tuple[str, str, str]] = field(default_factory=list)  # path, text before, text after
    doubtful: int = 0  # findings that are less certain than asked for
    checked: int = 0
    unreadable: int = 0
    failing: int = 0
    missing: int = 0
    from_cache: int = 0
    gated_out: list[str] = field(default_factory=list)
    internal_errors: list[tuple[str, str]] = field(default_factory=list)  # path, traceback
    skipped: list[tuple[str, str]] = field(default_factory=list)  # path, why there was nothing to check in it
    complaints: list[tuple[str, str]] = field(default_factory=list)  # path, what went wrong with a fix
    dependencies: set[str] = field(default_factory=set)  # other files that findings rest on
    notes: list[str] = field(default_factory=list)  # sentences on caches that are not used
    stages: dict[str, float] = field(default_factory=dict)  # seconds
    took: dict[str, dict[str, float]] = field(default_factory=dict)  # seconds by path and rule
    _fail_on: dict[str, str] = field(default_factory=dict, repr=False)  # by path

    def add(self, path: str, result: FileResult, config: Config, named: bool) -> None:
        """Take in the result of one file. Who names a file wants it checked: that an older Python reads it is an error then."""
        if named and not any("GPU000".startswith(one) for one in config.severity):
            told = (
                replace(one, severity=Severity.ERROR) if one.name == OLDER else one for one in result.findings
            )
            result = replace(result, findings=tuple(told))
        self.findings += result.findings
        self.doubtful += result.doubtful
        if result.outcome is not None:
            self.fixed += result.outcome.applied
            self.changes.append((path, result.before, result.outcome.text))
        if result.took:
            self.took[path] = dict(result.took)
        if result.internal:
            self.internal_errors.append((path, result.trace))
        self.dependencies |= {other for other, _ in result.dependencies}
        if result.skipped:
            self.skipped.append((path, result.skipped))
        if result.complaint:
            self.complaints.append((path, result.complaint))
        self.checked += result.readable
        self.unreadable += not result.readable
        self._fail_on[path] = config.fail_on
        self.failing += sum(map(self.fails, result.findings))

    def fails(self, finding: Finding) -> bool:
        """Whether the finding is at or above the `fail-on` of its file's configuration."""
        return _ORDER[finding.severity.value] >= _ORDER[self._fail_on.get(finding.filename, "warning")]

    def sort(self) -> None:
        self.findings.sort(key=lambda finding: finding.sort_key)
        self.fixed.sort(key=lambda finding: finding.sort_key)
        self.changes.sort()

    @property
    def exit_code(self) -> int:
        """0: no finding that fails; 1: findings; 2: a named path is not there, or gpulint failed."""
        if self.internal_errors or self.missing:
            return 2
        return 1 if self.failing else 0


def run(found: Discovery, options: Options, progress: Callable[[int, int], None] | None = None) -> Run:
    """Check everything that a search found.

    `progress(done, total)` is called as files get done. Raises `ConfigError` before any file is linted.
    """
    return _Runner(found, options, progress or (lambda done, total: None)).run()


class _Runner:
    def __init__(self, found: Discovery, options: Options, progress: Callable[[int, int], None]) -> None:
        self._found = found
        self._options = options
        self._progress = progress
        self._run = Run()
        self._configs = list({id(target.config): target.config for target in found.targets}.values())
        index = {id(config): number for number, config in enumerate(self._configs)}
        self._tasks = [Task(target.path, index[id(target.config)], target.size) for target in found.targets]
        self._named = {target.path for target in found.targets if target.named}
        top = top_of([task.path for task in self._tasks])
        self._checker = Checker(tuple(self._configs), options.mode, options.unsafe, options.cache, top)
        self._hashes: dict[str, str] = {}

    def run(self) -> Run:
        with self._stage("load rules"):
            for number in range(len(self._configs)):
                self._checker.selection(number)
        with self._stage("read cache"):
            caches = self._caches() if self._options.cache else {}
        with self._stage("read"):
            pending = [left for task in self._tasks for left in self._without_linting(task, caches)]
        with self._stage("lint"):
            for task, result in self._results(pending):
                cache = caches.get(task.config)
                if cache is not None and result.cacheable:
                    cache.put(task.path, result.digest, result)
                self._add(task, result)
        with self._stage("write cache"):
            for cache in caches.values():
                cache.save()
        self._add_problems()
        self._run.sort()
        return self._run

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Note how long a `with` block takes."""
        started = time.perf_counter()
        yield
        self._run.stages[name] = time.perf_counter() - started

    def _caches(self) -> dict[int, Cache]:
        """The cache of each configuration, by its index."""
        caches: dict[int, Cache] = {}
        for number, config in enumerate(self._configs):
            settings = repr(config)
            if not is_project_root(config.root):  # then what is checked together is the project
                settings += repr(self._checker.top)
            digest = run_digest(settings, tuple(rule_files(config.rules)))
            cache = Cache(self._options.cache_dir, config.root, digest)
            try:
                cache.load()
                caches[number] = cache
            except Foreign as foreign:
                self._tell(str(foreign.strerror))
        return caches

    def _tell(self, sentence: str) -> None:
        if sentence not in self._run.notes:
            self._run.notes.append(sentence)

    def _without_linting(self, task: Task, caches: dict[int, Cache]) -> list[Task]:
        """Settle a file from the cache; otherwise the task of linting it, with the gate's answer."""
        try:
            raw = read_bytes(task.path)
        except FileError:
            return [task]  # the checker meets the same error and reports it
        cache = caches.get(task.config)
        if cache is not None:
            entry = cache.get(task.path, content_hash(raw), self._hash_of)
            if entry is not None and not self._checker.wants_fixing(entry):
                self._run.from_cache += 1
                self._add(task, entry)
                return []
        passes = self._checker.passes_gate(raw, task.path, task.config)
        if not passes:
            self._run.gated_out.append(task.path)
        return [Task(task.path, task.config, len(raw), passes)]

    def _hash_of(self, path: str) -> str:
        if path not in self._hashes:
            try:
                self._hashes[path] = hash_of_every(path) or content_hash(read_bytes(path))
            except FileError:
                self._hashes[path] = ABSENT
        return self._hashes[path]

    def _results(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, FileResult]]:
        jobs = self._options.jobs or _cores()
        if jobs == 1 or len(tasks) < 2 or sum(map(_cost, tasks)) < _WORTH_PROCESSES:
            return self._in_process(tasks)
        from gpulint.lint.pool import can_start_workers, in_processes, worker_context

        if not can_start_workers():
            return self._in_process(tasks)
        if worker_context().get_start_method() == "fork" and any(task.passes_gate for task in tasks):
            # Once here instead of once in every worker; libcst is left to those that meet a file with something to report.
            import gpulint.analysis.asked
            import gpulint.lint.linter  # noqa: F401

        return in_processes(self._checker, _chunks(tasks, jobs), jobs, crashed)

    def _in_process(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, FileResult]]:
        """One after another. The collector would look through the growing syntax trees again and again: it waits."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            for task in tasks:
                yield task, self._checker(task)
        finally:
            if collecting:
                gc.enable()

    def _add(self, task: Task, result: FileResult) -> None:
        self._run.add(task.path, result, self._configs[task.config], task.path in self._named)
        self._progress(self._run.checked + self._run.unreadable, len(self._tasks))

    def _add_problems(self) -> None:
        for problem in self._found.problems:
            error = problem.error
            severity = Severity.WARNING if problem.harmless else Severity.ERROR
            place = (error.line, error.column)
            self._run.findings.append(diagnostic(problem.path, error.name, error.message, *place, severity))
            self._run.failing += 1
            self._run.unreadable += not problem.harmless
            self._run.missing += problem.missing


def _cost(task: Task) -> float:
    return task.size if task.passes_gate else task.size / _GATED_OUT_DISCOUNT


def _chunks(tasks: Iterable[Task], jobs: int) -> list[list[Task]]:
    """Tasks in groups of like cost, of files that lie together: what one of them rests on, the others do. In their
    order: the next group is of the project that a worker knows already."""
    ordered = list(tasks)
    limit = sum(map(_cost, ordered)) / (jobs * _CHUNKS_PER_JOB)
    chunks: list[list[Task]] = []
    filled = limit
    for task in ordered:
        if filled >= limit:
            chunks.append([])
            filled = 0.0
        chunks[-1].append(task)
        filled += _cost(task)
    return chunks


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
