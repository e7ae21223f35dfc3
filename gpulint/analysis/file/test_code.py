"""What a test runner calls: files of tests, their classes and functions. A name alone makes nothing a test."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import main_blocks
from gpulint.analysis.torch.frameworks import MODULE_BASES

_RUNNERS: Final = frozenset({"pytest", "unittest", "nose", "hypothesis"})
_PARTS: Final = ("absl.testing", "torch.testing._internal")
IMPORTS_RUNNER: Final = re.compile(
    rb"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|nose|hypothesis)\b", re.MULTILINE
)
_TEST_BASES: Final = ("TestCase", "TestBase", "TestMixin", "TesterMixin")


def by_place(filename: str) -> bool | None:
    """Whether a file is one of tests where its name and its folders settle it; None where what is in it does."""
    path = PurePath(filename)
    folders = path.parts[:-1]
    if path.name == "conftest.py" or "tests" in folders or "test_utils" in folders:
        return True
    named = path.name.startswith("test_") or path.name.endswith("_test.py")
    return None if named or "testing" in folders else False


def is_test_file(module: ir.Module, filename: str) -> bool:
    """Whether a file is one of tests. One that is only so named is, where a test runner would collect something in it:
    `net_test.py` with nothing of the kind evaluates a network. So does a script in a folder `testing`."""
    settled = by_place(filename)
    if settled is not None:
        return settled
    helps = "testing" in PurePath(filename).parts[:-1] and not _starts_itself(module)
    return helps or _holds_tests(module)


def _holds_tests(module: ir.Module) -> bool:
    return (
        imports_runner(module)
        or any(map(is_test_class, module.classes.values()))
        or any(
            is_test_function(module, function)
            for function in module.functions
            if function.parent is module.body and function.cls is None
        )
    )


def imports_runner(module: ir.Module) -> bool:
    return any(
        full.partition(".")[0] in _RUNNERS or full.startswith(_PARTS) for full in module.imports.values()
    )


def is_test_class(cls: ir.Class) -> bool:
    """Whether a test runner collects a class. `TestOptions` and `class TestNet(nn.Module)` are not for it."""
    bases = {(base.path or "").rpartition(".")[2] for base in cls.bases}
    if any(base.endswith(_TEST_BASES) for base in bases):
        return True
    named = cls.name.startswith("Test") or cls.name.endswith(("Test", "Tests", "TestCase"))
    if not named or not bases.isdisjoint(MODULE_BASES) or "__init__" in cls.methods:
        return False
    return any(name.startswith("test") for name in cls.methods) or any("Test" in base for base in bases)


def is_test_function(module: ir.Module, function: ir.Function) -> bool:
    """Whether a test runner calls a function of a file that is named for it. What it cannot give arguments to, or what the
    file calls with some, is a part of a script: `test_epoch(model, loader)`."""
    if not function.name.startswith("test_"):
        return function.name == "test" and not function.params
    given = [p for p in function.params if p.default is None and p.kind in ("normal", "keyword")]
    if not given or imports_runner(module):
        return True
    return not any(
        call.func.path == function.name for other in module.functions for _, call in ir.calls(other.body)
    )


def _starts_itself(module: ir.Module) -> bool:
    """Whether a file has an `if __name__ == "__main__":`."""
    return bool(main_blocks(module))
