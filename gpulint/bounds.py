"""How far a symbolic link may lead: no further than the project that it lies in.

Code that was just cloned is linted, so its links are not the user's. Where a link leads out of its project, what lies there is
neither read nor written; who means it names it by its own path.
"""

from __future__ import annotations

import errno
import os
from typing import Final

_REPOSITORY: Final = (".git",)
_PACKAGE: Final = ("pyproject.toml", "setup.py", "setup.cfg")


class LeadsOut(OSError):
    """A link on the way to a file leads out of its project; `strerror` says which, and where to."""

    def __init__(self, path: str, link: str, project: str) -> None:
        target = os.path.realpath(link)
        sentence = f"the symbolic link {link} leads out of {project}, to {target}: name the file by that path"
        super().__init__(errno.ELOOP, sentence, path)


def is_project_root(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds what marks a project: a repository, or the files of a package."""
    return _holds(folder, _REPOSITORY + _PACKAGE)


def project_around(folder: str) -> str:
    """The repository that an absolute folder is or lies in, otherwise the package; empty where nothing marks either."""
    for marks in (_REPOSITORY, _PACKAGE):
        step = folder
        while not _holds(step, marks):
            parent = os.path.dirname(step)
            if parent == step:
                break
            step = parent
        else:
            return step
    return ""


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies in it, as it is written."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def is_inside(path: str, project: str) -> bool:
    """Whether a real path lies in the folder of a project, and not in what git keeps there: that no repository brings along."""
    return is_below(path, os.path.realpath(project)) and not is_below(
        path, os.path.realpath(os.path.join(project, ".git"))
    )


def real_path(path: str) -> str:
    """Where `path` leads. Raises `LeadsOut` where that is outside the project of one of the links on the way, or for a file
    outside of all projects, outside its folder."""
    path = step = os.path.abspath(path)
    leads = os.name != "posix"  # elsewhere there is more than links: other letters, short names
    while step != (parent := os.path.dirname(step)):
        if os.path.islink(step):
            leads = True
            project = project_around(parent) or (parent if step == path else "")
            if project and not is_inside(os.path.realpath(step), project):
                raise LeadsOut(path, step, project)
        step = parent
    return os.path.realpath(path) if leads else path


def _holds(folder: str | os.PathLike[str], names: tuple[str, ...]) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in names)
