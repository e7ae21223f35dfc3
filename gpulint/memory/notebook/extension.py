"""`%load_ext gpulint`: the magics `%%gpu_memory` and `%gpu_memory`, and failed cells that let go of their memory."""

from __future__ import annotations

import gc
import re
from typing import Any

from gpulint.memory.cleaning import clear
from gpulint.memory.device import Unavailable
from gpulint.memory.errors import forget_errors
from gpulint.memory.notebook import cells

NAME = "gpu_memory"
_MARK = re.compile(rf"\s*%%{NAME}[ \t]*(?:\r?\n|$)")
# A cell that looks at the last error, which must then still be there.
_DEBUGS = re.compile(
    rf"(?:\s*#[^\n]*\n|\s*\n)*\s*(?:%%?debug\b|%tb\b|%{NAME}\b|%pdb\b|(?:debug|tb)\s*$)"
    r"|(?s:.*)\b(?:pm\(|post_mortem\(|last_(?:exc|value|traceback)\b)"
)
_USAGE = f"%{NAME} [on | off | clear | clear out]"


class Extension:
    """What is installed in one IPython shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.lets_go = True
        self._running: list[cells.Cell | None] = []

    def load(self) -> None:
        self.shell.register_magic_function(self.magic, "line_cell", NAME)
        self.shell.events.register("pre_run_cell", self.before_cell)
        self.shell.events.register("post_run_cell", self.after_cell)
        self.shell.input_transformers_cleanup.append(self.without_mark)

    def unload(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before_cell)
        self.shell.events.unregister("post_run_cell", self.after_cell)
        self.shell.input_transformers_cleanup.remove(self.without_mark)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(NAME, None)

    # -- around every cell -----------------------------------------------------------------------------------

    def before_cell(self, info: Any) -> None:
        text = info.raw_cell or ""
        if self.lets_go and not _DEBUGS.match(text) and forget_errors():
            gc.collect()
        marked = not self._running and _MARK.match(text)
        self._running.append(self._begin() if marked else None)

    def after_cell(self, result: Any) -> None:
        cell = self._running.pop() if self._running else None
        if cell is not None:
            print("\n".join(cell.lines()))

    def without_mark(self, lines: list[str]) -> list[str]:
        """The lines of a cell without `%%gpu_memory` at its head: it runs as it would without, async or with other magics. An
        empty line stands there, so that tracebacks count lines as the notebook does, unless another cell magic follows, which
        has to come first. What runs within a cell keeps the line, which then is an ordinary magic."""
        if self._running or not lines or not _MARK.fullmatch(lines[0]):
            return lines
        following = next((line for line in lines[1:] if line.strip()), "")
        return lines[1:] if following.startswith("%%") else ["\n", *lines[1:]]

    def _begin(self) -> cells.Cell | None:
        try:
            return cells.begin(self.shell)
        except Unavailable as missing:
            print(f"{NAME}: {missing}")
            return None

    # -- the magics ------------------------------------------------------------------------------------------

    def magic(self, line: str, cell: str | None = None) -> None:
        """What a cell leaves in GPU memory, and who holds it.

        %%gpu_memory            as a cell's first line: what the cell left, with its holders, what it freed, and its peak
        %gpu_memory             what is alive now, by who holds it
        %gpu_memory clear       let go of the last error, collect garbage, return the cache; tells what `Out` and `_` hold
        %gpu_memory clear out   forget those results, too
        %gpu_memory off         a failed cell's variables stay until you clear (on: until the next cell, which is the default)
        """
        if cell is not None:  # below another cell magic
            self._around(cell)
        elif line.split() in (["on"], ["off"]):
            self.lets_go = line.split() == ["on"]
        elif line.split() in (["clear"], ["clear", "out"]):
            print(clear(outputs="out" in line.split()))
        elif line.strip():
            print(f"{NAME}: {line.strip()!r} is unknown; usage: {_USAGE}")
        else:
            self._now()

    def _now(self) -> None:
        try:
            print("\n".join(cells.now(self.shell)))
        except Unavailable as missing:
            print(f"{NAME}: {missing}")

    def _around(self, text: str) -> None:
        measured = self._begin()
        try:
            self.shell.run_cell(text, store_history=False).raise_error()
        finally:
            if measured is not None:
                print("\n".join(measured.lines()))


_loaded: dict[int, Extension] = {}


def load(shell: Any) -> None:
    """Install the extension in a shell, once."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload(shell: Any) -> None:
    """Take the extension out again."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.unload()
