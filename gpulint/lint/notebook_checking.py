"""One notebook from its JSON to findings and a fixed JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.findings import Finding
from gpulint.lint.cells import CellModule, Places, join
from gpulint.lint.results import FileChecker, FileResult, Task, diagnostic
from gpulint.source.files import SourceFile
from gpulint.source.notebooks import Notebook, NotebookError, read_notebook

if TYPE_CHECKING:
    from gpulint.fix.fixing import FixResult


def check_notebook(checker: FileChecker, source: SourceFile, task: Task) -> FileResult:
    """Check (and fix) the notebook in `source`. Findings are placed in its cells."""
    try:
        notebook = read_notebook(source.text)
    except NotebookError as error:
        return checker.refused(task, error.message, error.line, error.column)
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

    def __init__(self, checker: FileChecker, task: Task, module: CellModule) -> None:
        self._checker = checker
        self._task = task
        self._module = module
        # By identity: a finding of an earlier pass may be equal to one that stands in another cell.
        self._placed: dict[int, tuple[Finding, Finding]] = {}

    def flaws(self) -> list[Finding]:
        """A GPU000 for each cell that does not parse."""
        return [
            replace(
                diagnostic(
                    self._task.path, "syntax-error", wrong.flaw.message, wrong.flaw.line, wrong.flaw.column
                ),
                cell=wrong.cell,
            )
            for wrong in self._module.flaws
        ]

    def __call__(self, text: str) -> list[Finding]:
        return self.admitted(text, self._checker.lint(text, self._task))

    def admitted(self, text: str, found: Sequence[Finding]) -> list[Finding]:
        """The findings in a module's text without the fixes that a notebook cannot take."""
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
