"""Notebooks are run as the script of their cells: in order, without IPython's own lines, in a file that is there for as long; what
was measured of it is told as of the cells."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import click

from gpulint.config import shown_path
from gpulint.findings import Finding
from gpulint.lint.cells import CellModule, Places, join
from gpulint.source.files import FileError, SourceFile, read_bytes, read_source
from gpulint.source.notebooks import Notebook, NotebookError, read_notebook
from gpulint.trial.plan import Trial, TrialFix
from gpulint.trial.trying import NotWritten, encoded, write

# What stands for `files = !ls` asks for something to be called: no shell runs here.
_HEAD = "_magic_ = lambda *_: []  # what `!command` gives here: no shell runs\n"

Measured = TypeVar("Measured", bound=Any)  # a frozen record with a `target`


@dataclass(frozen=True, slots=True)
class CellScript:
    """A notebook and the script of its cells, at `path` with the text `text`."""

    path: str
    text: str
    source: SourceFile
    notebook: Notebook
    module: CellModule
    places: Places

    @property
    def full(self) -> str:
        """Where the notebook lies."""
        return os.path.abspath(self.source.path)

    @property
    def home(self) -> str:
        """The folder in which a notebook runs."""
        return os.path.dirname(self.full)

    @property
    def place(self) -> str:
        """Where the script counts as lying, for what it imports and the configuration. No module can have that name."""
        return f"{self.full}.py"

    def told(self, findings: Sequence[Finding]) -> list[Finding]:
        """Findings as they are told: those of the script in the cells."""
        return [self._told(one) if one.filename == self.path else one for one in findings]

    def _told(self, finding: Finding) -> Finding:
        (found,) = self.places.in_cells([finding])
        name = self.source.path
        related = tuple(replace(o, filename=name) if o.filename == self.path else o for o in found.related)
        return replace(found, filename=name, related=related)

    def as_told(self, trial: Trial) -> Trial:
        """The trial of the script, as one of the notebook. Its diffs are still those of the script, by `place`."""

        def renamed(texts: dict[str, str]) -> dict[str, str]:
            return {self.place if path == self.path else path: text for path, text in texts.items()}

        def moved(fix: TrialFix) -> TrialFix:
            own = (replace(one, filename=self.place) for one in fix.findings)
            return replace(fix, findings=tuple(own)) if fix.file == self.path else fix

        judged = tuple(replace(one, fix=moved(one.fix)) for one in trial.judged)
        named = replace(trial, target=shown_path(self.source.path), judged=judged)
        return replace(named, originals=renamed(trial.originals), texts=renamed(trial.texts))

    def as_measured(self, measured: Measured) -> Measured:
        """What was measured of the script, or forecast, as of the notebook's cells: every record with a file and a line, and every text
        that names a place. One in the script becomes `book.ipynb:cell 3` and the line in that cell."""
        told: Measured = replace(self._moved(measured), target=shown_path(self.source.path))
        return told

    def _moved(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._named(value)
        if isinstance(value, tuple):
            return tuple(map(self._moved, value))
        if isinstance(value, dict):
            return {key: self._moved(one) for key, one in value.items()}
        if not is_dataclass(value) or isinstance(value, type):
            return value
        changes = {one.name: self._moved(getattr(value, one.name)) for one in fields(value) if one.init}
        if getattr(value, "file", "") == self.path and isinstance(line := getattr(value, "line", None), int):
            cell, row = self.places.cell(line)
            changes |= {"file": f"{self.full}:cell {cell}", "line": row}
            if hasattr(value, "end_line"):
                changes["end_line"] = max(row, value.end_line - line + row)
            if hasattr(value, "lines"):  # those in the same cell: a record has one file
                cells = map(self.places.cell, value.lines)
                changes["lines"] = tuple(other for number, other in cells if number == cell)
        return replace(value, **changes)

    def _named(self, text: str) -> str:
        script, notebook = map(os.path.basename, (self.path, self.full))
        if script not in text:
            return text

        def placed(lead: str, between: str) -> Callable[[re.Match[str]], str]:
            return lambda found: lead + between.join(map(str, self.places.cell(int(found[1]))))

        frame = placed(f'File "{self.full}:cell ', '", line ')
        text = re.sub(rf'File "{re.escape(self.path)}", line (\d+)', frame, text)
        text = re.sub(rf"\b{re.escape(script)}:(\d+)", placed(f"{notebook}:cell ", ":"), text)
        return text.replace(self.path, self.full)

    def note(self) -> str:
        """Which line of the script begins which cell."""
        starts: dict[int, int] = {}
        for row in range(2, self.text.count("\n") + 1):
            starts.setdefault(self.places.cell(row)[0], row)
        told = ", ".join(f"cell {cell} from line {row + 1}" for cell, row in list(starts.items())[:40])
        flaws = len(self.module.flaws)
        left_out = f"; {flaws} cells that do not parse are left out" if flaws else ""
        name = shown_path(self.source.path)
        return f"{name} runs as the script of its cells, without magics and shell lines: {told}{left_out}"

    def apply(self, trial: Trial) -> Trial:
        """Write the fixes that pay into the notebook's cells and the modules that they import. Raises `NotWritten`."""
        modules = {path: text for path, text in trial.texts.items() if path != self.path}
        ready = encoded(replace(trial, texts=modules))
        if self.path in trial.texts:
            ready[self.source.path] = self._rewritten(trial.texts[self.path])
        return write(trial, ready)

    def _rewritten(self, text: str) -> bytes:
        """The notebook, once the script has become `text`."""
        path = self.source.path
        sources = self.module.sources(text.removeprefix(_HEAD)) if text.startswith(_HEAD) else None
        if sources is None:
            raise NotWritten("a fix would change a magic or move code between cells; nothing was written")
        try:
            if read_bytes(path) != self.source.raw:
                raise NotWritten(f"{path} has changed since the trial began; nothing was written, run again")
            return self.source.encode(self.notebook.rewritten(sources))
        except FileError as error:
            raise NotWritten(f"{path}: {error.message}; nothing was written") from None


@contextmanager
def cell_script(path: str) -> Iterator[CellScript]:
    """The script of a notebook's cells, until the block ends. Raises click.UsageError where there is none."""
    try:
        source = read_source(path)
        notebook = read_notebook(source.text)
    except (FileError, NotebookError) as error:
        raise click.UsageError(f"{path}: {error.message}.") from error
    if notebook.foreign:
        raise click.UsageError(f"{path}: {notebook.foreign}.")
    module = join(notebook)
    text = _HEAD + module.text
    name = os.path.basename(path).rpartition(".")[0]
    with tempfile.TemporaryDirectory(prefix="gpulint-cells-") as folder:
        script = os.path.join(os.path.realpath(folder), f"{name}.py")
        with open(script, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        yield CellScript(script, text, source, notebook, module, Places(text))
