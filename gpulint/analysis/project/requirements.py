"""What a project says of the versions of torch that it runs with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from gpulint.analysis.models.table import table
from gpulint.analysis.project.file import File
from gpulint.analysis.project.program import Program, Sources

_FILES: Final = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
_OF_CONDA: Final = ("environment.yml", "environment.yaml", "env.yml", "env.yaml", "conda.yml", "conda.yaml")


def _requirement(package: str) -> re.Pattern[str]:
    """`"torch>=2.2,<3"`, `torch ~= 2.0` on a line of its own, `torch = "^2.1"`, `torch = {version = ">=2.0"}`."""
    return re.compile(
        rf"""(?:^[ \t]*|["'])(?:{package})[ \t]*(?:\[[^\]\n]*\])?[ \t]*\(?([<>=~!]=[^;"'\n#]*|[<>][^;"'\n#]*)|"""
        rf"""^(?:{package})[ \t]*=[ \t]*(?:\{{[^}}\n]*?version[ \t]*=[ \t]*)?["']([^"'\n]*)["']""",
        re.MULTILINE,
    )


_TORCH: Final = _requirement("torch")
# `- pytorch=1.8.1`, `- pytorch::pytorch>=1.8`, and pip's `- torch==1.8.1` in the same file
_CONDA: Final = re.compile(
    r"^[ \t]*-[ \t]*[\"']?(?:[\w-]+::)?(?:py)?torch[ \t]*([<>=~!]+[^\"'\n#]*)", re.MULTILINE
)
_WHEEL: Final = re.compile(r"/torch-(\d+\.\d+)[^/\s]*\.whl")  # by its address
_BOUND: Final = re.compile(r"(===?|>=?|~=|\^|~)?[ \t]*v?(\d+)(?:\.(\d+))?")

# In prose: `PyTorch 0.3.1`, `pytorch (version 0.2)`, `__PyTorch 0.3.0__`, but no lower bound.
_TOLD: Final = re.compile(
    r"(?i)(?<![^\W_])(?:py)?torch\b[ \t]*[(\[:,*`]*[ \t]*(?:version|ver\.?|v\.?)?[ \t=:`*]*(\d)\.(\d+)(?![\d+]|[\d.]*\+)"
)
_PROSE: Final = ("README.md", "readme.md", "Readme.md", "README.rst", "README.txt", "README")
_UPPER: Final = re.compile(r"(===?|<=?|~=|\^|~)[ \t]*v?(\d+)(?:\.(\d+))?(?:\.(\d+|\*))?")
_LAST: Final = 99  # no minor version is higher


def version_of(text: object) -> tuple[int, int] | None:
    """(2, 4) of "2.4"; None where none is given."""
    found = re.match(r"(\d+)\.(\d+)", str(text or ""))
    return None if found is None else (int(found[1]), int(found[2]))


def oldest_torch(project: Sources | None, filename: str) -> tuple[int, int] | None:
    """The oldest version that the project around a file asks for; None where it names none."""
    bounds = [bound for wanted in _requirements(project, filename) if (bound := _lowest(wanted)) is not None]
    return min(bounds, default=None)


def newest_torch(program: Program, file: File) -> tuple[int, int] | None:
    """The newest version that the project around a file runs with, by what it requires, and by what it imports that a newer one has no
    more; None where there is no upper bound."""
    bounds = [_highest(wanted) for wanted in _requirements(program.sources, file.path)]
    known = [bound for bound in bounds if bound is not None]
    required = [max(known)] if known and len(known) == len(bounds) else []
    return min((*required, *_still_had(program, file)), default=None)


def _still_had(program: Program, file: File) -> Iterator[tuple[int, int]]:
    """The newest versions that have what is imported without a condition."""
    for name, removed in table().removed.items():
        for other in program.searched(name.rpartition(".")[2], file):
            if any(f"{one}.".startswith(f"{name}.") for one in _imports(other.tree)):
                yield _highest(f"<{removed}") or (0, 0)


def _imports(tree: ast.Module) -> Iterator[str]:
    """The full names that the statements of a module import, those in a `try` or an `if` left out."""
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            module = f"{statement.module}." if isinstance(statement, ast.ImportFrom) else ""
            yield from (module + one.name for one in statement.names)


def told_torch(project: Sources | None, filename: str) -> tuple[int, int] | None:
    """The newest version that the project's README speaks of; None where it names none."""
    texts = project.beside(filename, _PROSE) if project is not None else []
    found = (each for text in texts for each in _TOLD.findall(text))
    return max(((int(major), int(minor)) for major, minor in found), default=None)


def torch_of(program: Program, file: File) -> tuple[int, int] | None:
    """The newest version that runs a file, by what the project requires, or else by what it tells; None where nothing says so."""
    return newest_torch(program, file) or told_torch(program.sources, file.path)


def _requirements(project: Sources | None, filename: str) -> list[str]:
    """`>=2.2,<3`, `^1.13`: the bounds that the project's files set to torch."""
    if project is None:
        return []
    texts = project.beside(filename, _FILES)
    found = [one for text in texts for one in _TORCH.findall(text)]
    wheels = [f"=={one}" for text in texts for one in _WHEEL.findall(text)]
    listed = [one for text in project.beside(filename, _OF_CONDA) for one in _CONDA.findall(text)]
    conda = [f"=={one[1:]}" if one[0] == "=" != one[1:2] else one for one in listed]
    # `torch = "1.13.1"` is that version alone; `torch = "^1.13"` says its bound
    return [*wheels, *conda, *(bound or (f"=={one}" if one[:1].isdigit() else one) for bound, one in found)]


def _highest(requirement: str) -> tuple[int, int] | None:
    """(2, 0) of `==2.0.1` and `~=2.0.1`, (2, 3) of `<2.4`, (1, 99) of `<2` and `^1.13`; None of `>=2.2`."""
    bounds: list[tuple[int, int]] = []
    for part in requirement.split(","):
        found = _UPPER.match(part.strip())
        if found is None:
            continue
        sign, major, minor, patch = found[1], int(found[2]), found[3], found[4]
        if sign == "^" or (sign == "~=" and patch is None) or minor is None:
            before = major - 1 if sign == "<" else major
            bounds.append((before, _LAST))
        elif sign == "<" and patch in (None, "0", "*"):
            bounds.append((major, int(minor) - 1) if int(minor) else (major - 1, _LAST))
        else:
            bounds.append((major, int(minor)))
    return min(bounds, default=None)


def _lowest(requirement: str) -> tuple[int, int] | None:
    """(2, 2) of `>=2.2,<3`; None of `<3` and `!=2.1`."""
    found = (_BOUND.match(part.strip()) for part in requirement.split(","))
    return next(((int(one[2]), int(one[3] or 0)) for one in found if one is not None), None)
