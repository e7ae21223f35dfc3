"""What a test runner calls: files of tests, their classes and functions. A name alone makes nothing a test."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath
from typing import Final

from gpulint.analysis.project.file import Class, File
from gpulint.analysis.syntax.nodes import last_name

_IMPORTS_RUNNER: Final = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|nose|hypothesis|absl\.testing|torch\.testing\._internal)\b",
    re.MULTILINE,
)
_STARTS_ITSELF: Final = re.compile(r"^if[ \t]+__name__[ \t]*==", re.MULTILINE)
_TEST_BASES: Final = ("TestCase", "TestBase", "TestMixin", "TesterMixin")


def by_place(filename: str) -> bool | None:
    """Whether a file is one of tests where its name and its folders settle it; None where what is in it does."""
    path = PurePath(filename)
    folders = path.parts[:-1]
    if path.name == "conftest.py" or "tests" in folders or "test_utils" in folders:
        return True
    named = path.name.startswith("test_") or path.name.endswith("_test.py")
    return None if named or "testing" in folders else False


def is_test_file(file: File, within: str) -> bool:
    """Whether a file, of this path in its project, is one of tests. One that is only so named is, where a test runner would collect
    something in it: `net_test.py` with nothing of the kind evaluates a network. So does a script in a folder `testing`."""
    settled = by_place(within)
    if settled is not None:
        return settled
    helps = "testing" in PurePath(within).parts[:-1] and _STARTS_ITSELF.search(file.text) is None
    return helps or _holds_tests(file)


def _holds_tests(file: File) -> bool:
    if _IMPORTS_RUNNER.search(file.text) is not None or any(map(_is_test_class, file.classes)):
        return True
    functions = (one for one in file.functions if one.parent is None and one.cls is None)
    return any(_is_test_function(file, one.node) for one in functions)


def _is_test_class(cls: Class) -> bool:
    """Whether a test runner collects a class: `TestOptions` is not for it."""
    bases = {last_name(base) for base in cls.node.bases}
    if any(base.endswith(_TEST_BASES) for base in bases):
        return True
    named = cls.name.startswith("Test") or cls.name.endswith(("Test", "Tests", "TestCase"))
    if not named or "__init__" in cls.methods or any(base.endswith("Module") for base in bases):
        return False
    return any(name.startswith("test") for name in cls.methods) or any("Test" in base for base in bases)


def _is_test_function(file: File, node: ast.FunctionDef) -> bool:
    """Whether a test runner calls a function of a file that is named for it. What it cannot give arguments to, where the file calls it
    with some, is a part of a script: `test_epoch(model, loader)`."""
    wanted = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
    if not node.name.startswith("test_"):
        return node.name == "test" and not (wanted or node.args.kwonlyargs)
    return not (wanted and file.calls_named(node.name))
