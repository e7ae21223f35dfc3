"""What a project says of the versions of torch that it runs with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpulint.analysis.project import Project

_FILES: Final = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
# `"torch>=2.2,<3"`, `torch ~= 2.0` on a line of its own, `torch = "^2.1"`, `torch = {version = ">=2.0"}`.
_REQUIREMENT: Final = re.compile(
    r"""(?:^[ \t]*|["'])torch[ \t]*(?:\[[^\]\n]*\])?[ \t]*\(?([<>=~!]=[^;"'\n#]*|[<>][^;"'\n#]*)|"""
    r"""^torch[ \t]*=[ \t]*(?:\{[^}\n]*?version[ \t]*=[ \t]*)?["']([^"'\n]*)["']""",
    re.MULTILINE,
)
_BOUND: Final = re.compile(r"(===?|>=?|~=|\^|~)?[ \t]*v?(\d+)(?:\.(\d+))?")


def oldest_torch(project: Project | None, filename: str) -> tuple[int, int] | None:
    """The oldest version that the project around a file asks for; None where it names none."""
    if project is None:
        return None
    bounds = [
        bound
        for text in project.beside(filename, _FILES)
        for requirement in _REQUIREMENT.findall(text)
        if (bound := _lowest(requirement[0] or requirement[1])) is not None
    ]
    return min(bounds, default=None)


def _lowest(requirement: str) -> tuple[int, int] | None:
    """(2, 2) of `>=2.2,<3`; None of `<3` and `!=2.1`."""
    for part in requirement.split(","):
        found = _BOUND.match(part.strip())
        if found is not None:
            return int(found[2]), int(found[3] or 0)
    return None
