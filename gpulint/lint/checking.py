"""One file from bytes to findings: read, gate, lint, fix. No processes, no cache; `gpulint.lint.engine` has those."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from gpulint.config import Config
from gpulint.findings import Finding
from gpulint.lint.results import FileResult, Task, diagnostic, internal_error, refusal, written
from gpulint.lint.selection import Selection
from gpulint.lint.suppressions import MARKER_BYTES, speaks_to_us, suppressed
from gpulint.source.files import (
    MAX_TEXT,
    FileError,
    SourceFile,
    TextError,
    content_hash,
    decode,
    is_notebook,
    read_bytes,
    split_lines,
)
from gpulint.source.program import UNKNOWN_TOP, Top
from gpulint.source.shell import MARKER as SETTINGS_MARKER
from gpulint.source.shell import is_settings_text
from gpulint.source.syntax import SourceError, flaw

if TYPE_CHECKING:
    from gpulint.analysis.project.disk import Project
    from gpulint.fix.fixing import FixResult
    from gpulint.lint.cells import CellModule
    from gpulint.rule import Rule
    from gpulint.source.notebooks import Notebook

Mode = Literal["check", "fix", "diff"]

# Where the caller has switched garbage collection off, so many bytes of source may pass without one. Syntax trees of a
# megabyte of source are about 100 MiB, and live as long as the lowered form of their file.
_GARBAGE: Final = 1_500_000

_BOM: Final = "\ufeff"


class Gate:
    """Whether any of some rules can fire on a file's bytes. A word that several rules ask for is searched once."""

    def __init__(self, rules: Sequence[type[Rule]]) -> None:
        self._needs = list(dict.fromkeys(rule.triggers for rule in rules))

    def passes(self, raw: bytes) -> bool:
        has = cache(raw.__contains__)
        return any(all(any(map(has, group)) for group in groups) for groups in self._needs)


def _importing(stem: str, name: str) -> re.Pattern[bytes]:
    """A text that takes a name out of a module, or all that it has: `from tools.layers import *`, `layers.deepcopy`."""
    module = re.escape(stem)
    listed = rf"from\s+[\w.]*\b{module}\s+import\s+(?:\*|\([^)]*\b{name}\b|[^\n(]*\b{name}\b)"
    return re.compile(rf"{listed}|\b{module}\.{name}\b".encode())


@dataclass
class Checker:
    """Checks files under a list of configurations. Called in worker processes, so it pickles.

    `buffers` are texts that stand for files which others import, as bytes by absolute path: an editor's unsaved ones.
    """

    configs: tuple[Config, ...]
    mode: Mode = "check"
    unsafe: bool = False
    hashing: bool = True
    top: Top = UNKNOWN_TOP
    buffers: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    _selections: dict[int, Selection] = field(default_factory=dict, repr=False)
    _gates: dict[frozenset[str], Gate] = field(default_factory=dict, repr=False)
    _uncollected: int = field(default=0, repr=False)
    _project: Project | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # A project's own rules are classes of modules that another process cannot import by name.
        return {**self.__dict__, "_selections": {}, "_gates": {}, "_project": None}

    def selection(self, config: int) -> Selection:
        """The rules under the configuration with this index. Raises `ConfigError` the first time it is asked."""
        if config not in self._selections:
            self._selections[config] = Selection(self.configs[config])
        return self._selections[config]

    def passes_gate(self, raw: bytes, path: str, config: int) -> bool:
        """Whether any rule in force can fire on these bytes."""
        selection = self.selection(config)
        if not selection.may_fire(raw):
            return False
        codes = selection.codes_for(path)
        if codes not in self._gates:
            self._gates[codes] = Gate(selection.rules_for(path).rules)
        return self._gates[codes].passes(raw)

    def __call__(self, task: Task) -> FileResult:
        """Read and check one file, and fix it where that is the mode. Raises nothing but KeyboardInterrupt."""
        try:
            raw = read_bytes(task.path)
        except FileError as error:
            return self._unreadable(task, error)
        result = self.check_bytes(raw, task)
        if task.passes_gate and not gc.isenabled():
            self._uncollected += len(raw)
            if self._uncollected > _GARBAGE:
                self._uncollected = 0
                gc.collect()
        if self.hashing and not result.digest:
            result = replace(result, digest=content_hash(raw))
        return result

    def check_bytes(self, raw: bytes, task: Task) -> FileResult:
        """Check (and fix, in the file) what was read from `task.path`."""
        is_settings = is_settings_text(task.path, raw[:200].decode("latin-1"))
        if is_settings and SETTINGS_MARKER not in raw and MARKER_BYTES not in raw.lower():
            return FileResult()
        try:
            source = decode(task.path, raw)
        except FileError as error:
            return self._unreadable(task, error)
        return self.check_source(source, task)

    def check_text(self, text: str, path: str) -> FileResult:
        """Check a text that no file holds, or not yet, under the name `path` and the first configuration.

        Under `diff` the outcome's text is without a byte order mark. Raises `ConfigError`.
        """
        if "\0" in text:
            return FileResult((diagnostic(path, "invalid-source", "contains a NUL character"),))
        try:
            raw = text.encode("utf-8")
        except UnicodeEncodeError as error:
            lines = split_lines(text[: error.start])
            message = "contains half of a surrogate pair, which no file can"
            found = diagnostic(path, "invalid-source", message, len(lines), len(lines[-1]) + 1)
            return FileResult((found,))
        source = SourceFile(path, raw, text.removeprefix(_BOM), "utf-8", text.startswith(_BOM))
        passes = self.passes_gate(raw, os.path.abspath(path), 0)
        return self.check_source(source, Task(path, 0, len(raw), passes))

    def forget_files(self) -> None:
        """Files of the project may have changed: read anew what is kept without looking at the disk each time."""
        if self._project is not None:
            self._project.forget_files()

    def check_source(self, source: SourceFile, task: Task) -> FileResult:
        """Check (and fix) a text that is already decoded."""
        try:
            return self._checked(source, task)
        except Exception as error:
            return internal_error(task.path, error)

    def lint(self, text: str, task: Task) -> list[Finding]:
        """The findings in force in `text`. Raises `SourceError`, and whatever goes wrong inside a rule."""
        return list(self._lint(text, task).findings)

    def _lint(self, text: str, task: Task) -> FileResult:
        """The same, with the number of those that are less certain than asked for, and what each rule took."""
        from gpulint.lint.linter import linted

        if is_settings_text(task.path, text):
            return FileResult(tuple(self.in_force(self._settings(text, task), task)))
        rules = self.selection(task.config).rules_for(task.path)
        found = linted(text, task.path, rules, self.project)
        found.text.release()
        wrong = found.text.trees.unfixable
        refused = self.refused(task, wrong).findings if wrong is not None else ()
        left = tuple(self.in_force((*found.findings, *refused), task))
        return FileResult(left, found.doubtful, took=tuple(found.text.took.items()))

    @property
    def project(self) -> Project:
        """What is known of the files around those that are checked."""
        if self._project is None:
            from gpulint.analysis.project.disk import Project

            self._project = Project(self.buffers, self.top)
        return self._project

    def _settings(self, text: str, task: Task) -> list[Finding]:
        from gpulint.lint.linter import lint_settings

        return lint_settings(text, task.path, self.selection(task.config).rules_for(task.path))

    def in_force(self, findings: Iterable[Finding], task: Task) -> list[Finding]:
        """What the configuration leaves of the findings, with its severities, in order."""
        selection = self.selection(task.config)
        codes = selection.codes_for(task.path)
        graded = selection.graded(finding for finding in findings if finding.code in codes)
        return sorted(graded, key=lambda finding: finding.sort_key)

    def _checked(self, source: SourceFile, task: Task) -> FileResult:
        if is_notebook(task.path):
            return _check_notebook(self, source, task)
        if not task.passes_gate:
            return self._ungated(source.text, task)
        result = self.linted(source.text, task)
        if self.wants_fixing(result):
            fix = partial(self._fix_text, source.text, task)
            result = self.fixed(source, task, result, fix)
        return result

    def _ungated(self, text: str, task: Task) -> FileResult:
        """What is left to say about a file that no rule in force has anything to say about."""
        if len(text) > MAX_TEXT:
            return FileResult()
        wrong = None if is_settings_text(task.path, text) else flaw(text)
        if wrong is not None:
            from gpulint.lint.trees import is_for_another_python

            if not is_for_another_python(text, wrong):
                return self.refused(task, wrong)
        return FileResult(tuple(self.unused_suppressions(text, task)))

    def wants_fixing(self, result: FileResult) -> bool:
        """Whether there is a finding whose fix is to be applied."""
        return self.mode != "check" and any(one.is_mended(self.unsafe) for one in result.findings)

    def linted(self, text: str, task: Task) -> FileResult:
        """The findings in `text`, or a GPU000 that says why it cannot be analysed."""
        try:
            found = self._lint(text, task)
            return replace(
                found, dependencies=self._project.dependencies if self._project is not None else ()
            )
        except SourceError as error:
            return self.refused(task, error)
        except RecursionError:
            return self.refused(task, SourceError("nested too deeply to be analysed"))
        except MemoryError:
            return self.refused(task, SourceError("not enough memory to analyse this file"))

    def refused(self, task: Task, wrong: TextError) -> FileResult:
        """The result for a file that cannot be analysed."""
        finding = refusal(task.path, wrong)
        suffix = os.path.splitext(task.path)[1]
        if suffix and not suffix.startswith((".py", ".ipynb")):
            message = f"not read as Python, which neither its name nor its text is: {finding.message}"
            finding = replace(finding, message=message)
        return FileResult(tuple(self.in_force([finding], task)))

    def _unreadable(self, task: Task, error: FileError) -> FileResult:
        finding = diagnostic(task.path, error.name, error.message, error.line, error.column)
        return FileResult(tuple(self.in_force([finding], task)), readable=False)

    def unused_suppressions(self, text: str, task: Task) -> list[Finding]:
        """The comments of a file without findings that silence nothing."""
        if not speaks_to_us(text):
            return []
        selection = self.selection(task.config)
        codes = selection.codes_for(task.path)
        return self.in_force(suppressed(text, [], lambda row: row, task.path, codes, selection.names), task)

    def _fix_text(self, text: str, task: Task) -> FixResult:
        from gpulint.fix.fixing import fix_text

        is_python = not is_settings_text(task.path, text)
        done = fix_text(text, lambda text: self.lint(text, task), self.unsafe, is_python)
        return self._tidied(text, done, task) if is_python and done.applied else done

    def _tidied(self, text: str, done: FixResult, task: Task) -> FixResult:
        """The same without the imports that the fixes have left unused, unless another file takes them from here."""
        from gpulint.fix.imports import names_left_unused, without_imports

        unused = names_left_unused(text, done.text)
        stem = Path(task.path).stem
        if not unused or stem == "__init__":
            return done
        taken = {name for name in unused if self.project.contains(task.path, _importing(stem, name))}
        tidy = without_imports(done.text, unused - taken)
        return done if tidy == done.text else replace(done, text=tidy, remaining=self.lint(tidy, task))

    def fixed(
        self, source: SourceFile, task: Task, result: FileResult, fix: Callable[[], FixResult]
    ) -> FileResult:
        """`result` after `fix` has been applied, in the file where that is the mode."""
        from gpulint.fix import fixing

        if not source.survives_rewriting:
            return result  # the encoding is not one-to-one: writing would change bytes outside the fix
        try:
            outcome = fix()
        except SourceError as error:
            raise RuntimeError(
                f"a fix gives code that does not parse (nothing was written): {error}"
            ) from error
        result = replace(result, complaint=outcome.error or "")
        if outcome.text == source.text:
            return replace(result, findings=tuple(outcome.remaining))
        result = replace(result, before=source.text, outcome=outcome)
        if self.mode == "diff":
            return result
        failure = written(source, outcome.text, fixing.write_atomic)
        if failure:
            unwritten = diagnostic(task.path, "unwritable-file", failure)
            return replace(result, findings=(*result.findings, unwritten), outcome=None)
        self.project.forget_engine()
        digest = content_hash(source.encode(outcome.text)) if self.hashing else ""
        return replace(result, findings=tuple(outcome.remaining), digest=digest)


# -- notebooks: one from its JSON to findings and a fixed JSON -------------------------------------------------


def _check_notebook(checker: Checker, source: SourceFile, task: Task) -> FileResult:
    """Check (and fix) the notebook in `source`. Findings are placed in its cells."""
    from gpulint.lint.cells import Places, join
    from gpulint.source.notebooks import NotebookError, read_notebook

    try:
        notebook = read_notebook(source.text)
    except NotebookError as error:
        return checker.refused(task, error)
    if notebook.foreign:
        return FileResult(skipped=notebook.foreign)
    module = join(notebook)
    linter = _CellLinter(checker, task, module)
    flaws = checker.in_force(linter.flaws(), task)
    if not module.text:
        return FileResult(tuple(flaws))
    if not task.passes_gate or not checker.passes_gate(module.text.encode(), task.path, task.config):
        unused = Places(module.text).in_cells(checker.unused_suppressions(module.text, task))
        return FileResult((*flaws, *unused))
    linted = checker.linted(module.text, task)
    found = linter.in_cells(linter.admitted(module.text, linted.findings))
    result = replace(linted, findings=(*flaws, *found))
    if checker.wants_fixing(result):
        result = checker.fixed(source, task, result, lambda: linter.fix(notebook, checker.unsafe))
    ordered = sorted(result.findings, key=lambda finding: finding.sort_key)
    return replace(result, findings=tuple(ordered))


class _CellLinter:
    """Lints a module of cells, and keeps what it found as it stands in the cells."""

    def __init__(self, checker: Checker, task: Task, module: CellModule) -> None:
        self._checker = checker
        self._task = task
        self._module = module
        # By identity: a finding of an earlier pass may be equal to one that stands in another cell.
        self._placed: dict[int, tuple[Finding, Finding]] = {}

    def flaws(self) -> list[Finding]:
        """A GPU000 for each cell that does not parse."""
        return [
            replace(refusal(self._task.path, wrong), cell=cell) for cell, wrong in self._module.flaws.items()
        ]

    def __call__(self, text: str) -> list[Finding]:
        return self.admitted(text, self._checker.lint(text, self._task))

    def admitted(self, text: str, found: Sequence[Finding]) -> list[Finding]:
        """The findings in a module's text without the fixes that a notebook cannot take."""
        from gpulint.lint.cells import Places

        kept: list[Finding] = []
        for finding, inner in zip(found, Places(text).in_cells(found), strict=True):
            if inner.fix is None and finding.fix is not None:
                finding = replace(finding, fix=None)
            kept.append(finding)
            self._placed[id(finding)] = (finding, inner)
        return kept

    def fix(self, notebook: Notebook, unsafe: bool) -> FixResult:
        """The notebook's JSON with the fixes in its cells."""
        from gpulint.fix.fixing import fix_text

        done = fix_text(self._module.text, self, unsafe)
        sources = self._module.sources(done.text)
        if sources is None:
            error = "This is a bug in gpulint: a fix would change a magic or move code between cells; none was applied."
            remaining = self.in_cells(self(self._module.text))
            return replace(done, text=notebook.text, applied=[], remaining=remaining, error=error)
        return replace(
            done,
            text=notebook.rewritten(sources),
            applied=self.in_cells(done.applied),
            remaining=[*self._checker.in_force(self.flaws(), self._task), *self.in_cells(done.remaining)],
        )

    def in_cells(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings given out by this linter, placed in their cells."""
        return [self._placed[id(finding)][1] for finding in findings]
