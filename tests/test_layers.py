"""Who may import whom. The verifier is given findings as data: it knows nothing of the linter that made them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import gpulint

HOME = Path(gpulint.__file__).parent

# What `gpulint.runtime` may import of gpulint: itself, and modules that know neither rules nor source analysis.
OPEN_TO_RUNTIME = frozenset(
    {"gpulint.runtime", "gpulint.claims", "gpulint.findings", "gpulint.marks", "gpulint.units"}
)
OTHERS = frozenset({"torch"})  # besides the standard library: the child runs in the user's interpreter


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file, inside functions and under TYPE_CHECKING too: its row and the module's full name."""
    package = ".".join(("gpulint", *path.relative_to(HOME).parts[:-1]))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = importlib.util.resolve_name("." * node.level + module, package)
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield node.lineno, inner if is_module(inner) else module


def is_module(name: str) -> bool:
    path = HOME.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def is_allowed(module: str, of_ours: frozenset[str]) -> bool:
    root = module.partition(".")[0]
    if root == "gpulint":
        return any(module == one or module.startswith(f"{one}.") for one in of_ours)
    return root in sys.stdlib_module_names or root in OTHERS


def test_the_verifier_imports_no_linter() -> None:
    files = sorted((HOME / "runtime").rglob("*.py"))
    assert len(files) > 20
    wrong = [
        f"{path.relative_to(HOME)}:{row} imports {module}"
        for path in files
        for row, module in imported(path)
        if not is_allowed(module, OPEN_TO_RUNTIME)
    ]
    assert wrong == []


def test_what_the_verifier_imports_knows_no_linter_either() -> None:
    for name in sorted(OPEN_TO_RUNTIME - {"gpulint.runtime"}):
        path = HOME.parent.joinpath(*name.split(".")).with_suffix(".py")
        assert [m for _, m in imported(path) if not is_allowed(m, OPEN_TO_RUNTIME)] == [], name


def test_what_is_allowed_is_a_short_list() -> None:
    path = HOME / "runtime" / "parent" / "verdict.py"
    assert {"gpulint.runtime.parent.judging", "gpulint.findings"} <= {module for _, module in imported(path)}
    assert not is_allowed("gpulint.lint.linter", OPEN_TO_RUNTIME)
    assert not is_allowed("gpulint", OPEN_TO_RUNTIME)
    assert not is_allowed("libcst", OPEN_TO_RUNTIME)
