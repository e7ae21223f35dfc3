"""A project that remembers whether a file's findings rest on who calls its functions."""

from __future__ import annotations

from gpulint.analysis import ir
from gpulint.analysis.project import Project


class AskedProject(Project):
    """Any file of the project, also a new one, may hold a caller: `dependencies` cannot name what an answer about
    callers rests on. `asked` is set by such a question, and taken back by whoever begins with another file."""

    asked = False

    def guarded_everywhere(self, origin: str, function: ir.Function) -> bool:
        self.asked = True
        return super().guarded_everywhere(origin, function)
