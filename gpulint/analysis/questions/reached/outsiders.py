"""Who may run a function besides the calls of the program by its name: command lines, frameworks, base classes out of sight,
those who install the package.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.project.scripts import PROJECT_FILES
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Programs that make objects of classes that their settings name.
_BY_NAME = re.compile(
    rb"\b(?:__import__|hydra|instantiate(?=\()|LightningCLI|jsonargparse|pydoc|iter_modules|walk_packages|"
    rb"__subclasses__|__init_subclass__)\b"
)
_IMPORTS = re.compile(rb"(?<!import )\bimport_module\b")
_IMPORTS_OF = _IMPORTS.pattern + rb"(?!\s*\(\s*f?[\"'](?!(?:%s)\b)\w+\.)"

_PACKAGED = re.compile(
    r"\bsetup\(|^\[(?:project|build-system|tool\.(?:poetry|flit|pdm|hatch)\b|metadata|options)", re.M
)
# Decorators that leave it to a call by its name to run the function.
_HARMLESS = frozenset(
    "staticmethod classmethod lru_cache cache no_grad inference_mode enable_grad wraps".split()
)
_MODULE_METHODS = frozenset({"forward", "__call__", "__init__", "main"})


def makes_by_name(file: FileAnalysis) -> bool:
    """Whether a program makes objects of classes that its settings name, where these may stand in this file: one that imports
    `f"configs.{name}"` makes none of another folder's."""
    project = file.project
    if project is None or project.contains(file.filename, _BY_NAME):
        return True
    if not project.contains(file.filename, _IMPORTS):
        return False
    parts = PurePath(project.within(file.filename)).with_suffix("").parts
    own = b"|".join(re.escape(os.fsencode(part)) for part in parts)
    return project.contains(file.filename, re.compile(_IMPORTS_OF % own))


def may_be_started(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether somebody other than a call by its name may run it: a command line, a framework, an unseen base class."""
    if function is file.module.body or function in file.started:
        return True
    if any(_last(decorator) not in _HARMLESS for decorator in function.decorators):
        return True  # it may be registered somewhere
    if function.name in _MODULE_METHODS | frameworks.PER_BATCH_HOOKS or function.name.startswith("__"):
        return True
    info = file.class_of(function)
    return info is not None and has_unseen_base(info)


def has_unseen_base(info: ClassInfo) -> bool:
    """Whether a class has a base that is neither the project's nor torch's plain module."""
    for one in info.ancestors():
        seen = {base.cls.name for base in one.bases}
        lasts = {name.rpartition(".")[2] for name in one.base_names}
        if lasts - seen - {"object", "ABC", "Module"}:
            return True
    return False


def makes_by_itself(info: ClassInfo) -> bool:
    """Whether a class may come to objects without a call by its name: through its decorators, or a base that is not seen and
    none of torch's."""
    known = frameworks.PLAIN_BASES | frameworks.MODULE_BASES
    return any(
        one.cls.decorators
        or any(
            full.rpartition(".")[2] not in known | {base.cls.name for base in one.home.bases_of(one)}
            and not full.startswith("torch.")
            for full in one.base_names
        )
        for one in info.lineage()
    )


def is_for_others(file: FileAnalysis) -> bool:
    """Whether the file is a part of a package that is installed: who uses it stands elsewhere."""
    project = file.project
    texts = project.beside(file.filename, PROJECT_FILES) if project is not None else []
    if project is None or not texts:
        return False
    top = PurePath(project.within(file.filename)).parts[0]
    folders = project.top_folders(file.filename)
    return any(_PACKAGED.search(text) and _installs(text, top, folders) for text in texts)


def _installs(text: str, top: str, folders: frozenset[str]) -> bool:
    """Whether what lies in a folder at the top of a project is among what its setup.py installs: all packages, unless it lists
    some or has the name of one of them, and none where it only builds extensions."""
    if "setup(" not in text:
        return True
    name = re.search(r"\bname\s*=\s*[\"']([\w-]+)[\"']", text)
    if name is not None and top != (own := name[1].replace("-", "_")) and own in folders:
        return False  # what others import is called after what they install
    listed = re.search(r"\bpackages\s*=\s*(\[[^\]]*\])", text)
    if listed is not None:
        names = re.findall(r"[\"']([\w.]+)[\"']", listed[1])
        return any(name.partition(".")[0] == top for name in names)
    return any(word in text for word in ("packages", "py_modules", "package_dir"))


def _last(decorator: ir.Expr) -> str:
    func = decorator.func if isinstance(decorator, ir.Call) else decorator
    return (func.path or "").rpartition(".")[2]
