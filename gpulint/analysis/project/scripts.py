"""The functions that a project's metadata installs as commands: whoever starts one adds nothing around it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from typing import Final

from gpulint.analysis.project.program import Sources
from gpulint.config import parse_toml

PROJECT_FILES: Final = ("pyproject.toml", "setup.cfg", "setup.py")
_TABLES: Final = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))
# In setup.py and setup.cfg: the list below `console_scripts`, as a Python list or as the lines of an INI file.
_LISTS: Final = re.compile(
    r"\b(?:console|gui)_scripts\b[\"']?\s*(?:[:=]\s*[\[(](?P<python>[^\])]*)|\]?\s*=?[ \t]*(?P<ini>(?:\n[ \t]*[\w.-]+[ \t]*=[^\n]*)+))"
)
_TARGET: Final = re.compile(r"=\s*[\"']?([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_][\w.]*)")


def console_scripts(project: Sources | None, filename: str) -> frozenset[str]:
    """The functions of a file that its project's metadata installs as commands, by their names in the file."""
    texts = project.beside(filename, PROJECT_FILES) if project is not None else ()
    parts = PurePath(filename).with_suffix("").parts
    module = parts[:-1] if parts[-1] == "__init__" else parts
    named = (one for text in texts if "scripts" in text for one in _scripts(text))
    split = ((tuple(dotted.split(".")), function) for dotted, function in named)
    return frozenset(function for wanted, function in split if module[-len(wanted) :] == wanted)


@lru_cache(maxsize=64)
def _scripts(text: str) -> frozenset[tuple[str, str]]:
    """The commands that a project file names, as (module, function). A file that is no TOML is setup.py or setup.cfg."""
    try:
        data = parse_toml(text)
    except ValueError:
        found = (match["python"] or match["ini"] or "" for match in _LISTS.finditer(text))
        return frozenset(pair for part in found for pair in _TARGET.findall(part))
    targets: list[str] = []
    for path in _TABLES:
        table: object = data
        for key in path:
            table = table.get(key) if isinstance(table, dict) else None
        for target in table.values() if isinstance(table, dict) else ():
            # Poetry also writes `{ reference = "package.module:main", type = "console" }`.
            written = target.get("reference", target.get("callable")) if isinstance(target, dict) else target
            targets += [written] if isinstance(written, str) else []
    return frozenset(pair for target in targets for pair in _TARGET.findall(f"={target}"))
