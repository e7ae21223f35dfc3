"""The house: which room may import which. Every import counts, those for types and within functions too.

`docs/architecture.md` explains the rooms; this table is what holds them. A room may also import itself, but no module may
import, by whatever way round, one that imports it.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {"gpulint": ROOT / "gpulint", "gpulint.rules": ROOT / "rules"}

MOST_FILES = 19  # in one folder
MOST_FIELDS = 20  # of one record

ANALYSIS = "gpulint.analysis"
RULES = "gpulint.rules"
RUNTIME = "gpulint.runtime"
REPORTS = "gpulint.reports"
# the engine, from the floor up
ENGINE = {f"{ANALYSIS}.{room}" for room in ("syntax", "models", "project", "domain", "evaluate", "queries")}


def of_ours(names: str) -> set[str]:
    return {f"gpulint.{name}" for name in names.split()}


def below(parent: str, rooms: str) -> set[str]:
    return {f"{parent}.{room}" for room in rooms.split()}


# room -> the rooms and modules that it may import besides itself; what lies directly in gpulint/ is named module by module
FLOORS: dict[str, set[str]] = {
    "gpulint.source": of_ours("findings config atomic bounds"),
    f"{ANALYSIS}.syntax": set(),
    f"{ANALYSIS}.project": below(ANALYSIS, "syntax models") | of_ours("source config bounds"),
    f"{ANALYSIS}.domain": set(),
    f"{ANALYSIS}.models": of_ours("units"),
    f"{ANALYSIS}.evaluate": below(ANALYSIS, "syntax project domain models"),
    f"{ANALYSIS}.queries": below(ANALYSIS, "syntax project domain models evaluate")
    | of_ours("answers units"),
    ANALYSIS: ENGINE,
    "gpulint.fix": of_ours("source findings atomic rule"),
    RULES: {ANALYSIS, *ENGINE} | of_ours("answers claims findings rule fix"),
    "gpulint.lint": {ANALYSIS, RULES, *ENGINE}
    | of_ours("source fix answers atomic bounds config findings rule version"),
    f"{RUNTIME}.record": of_ours("units"),
    f"{RUNTIME}.probes": below(RUNTIME, "record"),
    f"{RUNTIME}.holding": below(RUNTIME, "record probes") | of_ours("units"),
    f"{RUNTIME}.observing": below(RUNTIME, "record probes"),
    f"{RUNTIME}.trying": below(RUNTIME, "record probes"),
    f"{RUNTIME}.child": below(RUNTIME, "record probes holding observing trying") | of_ours("marks"),
    f"{RUNTIME}.parent": below(RUNTIME, "record") | of_ours("claims findings units"),
    "gpulint.trial": of_ours("source findings atomic units") | below(RUNTIME, "record parent trying"),
    "gpulint.memory": {f"{ANALYSIS}.models"}
    | below(RUNTIME, "record probes holding")
    | of_ours("atomic units"),
    "gpulint.allocator": of_ours("memory units"),
    "gpulint.snapshot": of_ours("allocator units") | {"gpulint.memory"},
    "gpulint.operator": of_ours("allocator memory atomic units") | below(RUNTIME, "record parent"),
    "gpulint.forecasting": of_ours("allocator marks units")
    | below(RUNTIME, "record parent child observing probes"),
    "gpulint.codemods": of_ours("source config atomic memory fix rule"),
    REPORTS: of_ours("source config findings rule units version"),
    f"{REPORTS}.lint": {REPORTS} | of_ours("source lint findings rule version"),
    f"{REPORTS}.verify": {REPORTS} | of_ours("source config units version") | below(RUNTIME, "record parent"),
    f"{REPORTS}.trial": {REPORTS, f"{REPORTS}.verify"}
    | of_ours("source config units version trial")
    | below(RUNTIME, "record"),
    f"{REPORTS}.forecast": {REPORTS} | of_ours("config forecasting units version"),
    f"{REPORTS}.snapshot": {REPORTS} | of_ours("snapshot units"),
    f"{REPORTS}.oom": {REPORTS} | of_ours("memory operator"),
    "gpulint.testing": below(RUNTIME, "record parent probes holding observing child")
    | of_ours("atomic memory operator source units"),
    "gpulint.server": of_ours("source lint answers config findings rule fix api version"),
    "gpulint.cli": of_ours(
        "source lint trial testing answers atomic bounds config findings rule units verifying version"
    )
    | {REPORTS, *below(REPORTS, "lint verify trial")}
    | below(RUNTIME, "record parent"),
    "gpulint.cli.commands": {"gpulint.cli", RULES, REPORTS, *below(REPORTS, "snapshot forecast oom verify")}
    | of_ours(
        "allocator atomic codemods config findings forecasting lint memory operator rule server snapshot source"
        " testing trial units"
    )
    | below(RUNTIME, "record parent"),
}

# The most lines of code, comments and docstrings left out, that a room of the engine may have: they only go down.
BUDGETS = {
    ANALYSIS: 139,
    f"{ANALYSIS}.syntax": 732,
    f"{ANALYSIS}.project": 667,
    f"{ANALYSIS}.domain": 158,
    f"{ANALYSIS}.evaluate": 3_099,
    f"{ANALYSIS}.models": 230,
    f"{ANALYSIS}.queries": 4_729,
    RULES: 6_180,
}
MOST_OF_READING = 15_934  # all of them together; 16,000 is the aim
MOST_MODULES = 120  # of theirs


@cache
def modules() -> dict[str, Path]:
    """Every module of gpulint by its dotted name, as it is installed."""
    found: dict[str, Path] = {}
    for package, folder in SOURCES.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


@cache
def named(module: str) -> frozenset[str]:
    """What a module imports anywhere in its text; of gpulint the modules, of others what is written there."""
    known = modules()
    found: set[str] = set()
    for node in ast.walk(ast.parse(known[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{module} imports relatively"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in known else node.module for name in names}
    return frozenset(found)


def imports(module: str) -> frozenset[str]:
    """The modules of gpulint that a module imports."""
    return named(module) & modules().keys()


def room_of(module: str) -> str | None:
    """The room of the table that a module stands in."""
    return max((room for room in FLOORS if f"{module}.".startswith(f"{room}.")), key=len, default=None)


def inhabitants() -> Iterator[tuple[str, str]]:
    for module in sorted(modules()):
        room = room_of(module)
        if room is not None:
            yield module, room


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_only_the_floors_below(room: str) -> None:
    allowed = FLOORS[room] | {room}
    wrong = [
        f"{module} imports {other}"
        for module, where in inhabitants()
        if where == room
        for other in sorted(imports(module))
        if (room_of(other) or other) not in allowed
    ]
    assert not wrong


def test_nothing_hangs_together_in_a_circle() -> None:
    """Neither the rooms of the table nor any modules of the whole package, by whatever way round."""
    TopologicalSorter({room: FLOORS[room] & FLOORS.keys() for room in FLOORS}).prepare()
    TopologicalSorter({module: imports(module) for module in modules()}).prepare()


RUNTIME_READS = of_ours("claims findings marks units")
IN_THE_USERS_INTERPRETER = frozenset({"gpulint", "torch", *sys.stdlib_module_names})


def test_the_verifier_and_what_it_imports_know_no_linter() -> None:
    """Its child runs in the user's interpreter, which has no packages but its own."""
    inside = [module for module in modules() if module in RUNTIME_READS or module.startswith(f"{RUNTIME}.")]
    assert len(inside) > 20
    assert not [
        f"{module} imports {name}"
        for module in inside
        for name in named(module)
        if name.partition(".")[0] not in IN_THE_USERS_INTERPRETER
    ]
    assert not [
        f"{module} imports {other}"
        for module in inside
        for other in imports(module)
        if other not in RUNTIME_READS and not f"{other}.".startswith(f"{RUNTIME}.")
    ]


def test_no_folder_holds_more_files_than_can_be_overlooked() -> None:
    folders = {path.parent for path in modules().values()} - {SOURCES["gpulint.rules"]}  # a rule is a file
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    assert {name: count for name, count in counts.items() if count > MOST_FILES + 1} == {}


def test_the_page_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {room.removeprefix("gpulint.").replace(".", "/") + "/" for room in FLOORS}
    assert not [room for room in sorted(rooms) if f"`{room}`" not in page]


def test_no_record_of_the_analysis_has_more_fields_than_can_be_overlooked() -> None:
    wide = {
        f"{module}.{node.name}": count
        for module, path in modules().items()
        if module.startswith((ANALYSIS, RULES))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.decorator_list
        if (count := sum(isinstance(statement, ast.AnnAssign) for statement in node.body)) > MOST_FIELDS
    }
    assert wide == {}


def lines_of_code(path: Path) -> int:
    """The lines with code of a file: blank ones, comments and docstrings left out."""
    text = path.read_text(encoding="utf-8")
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    rows = enumerate(text.splitlines(), 1)
    return sum(
        1
        for row, line in rows
        if line.strip() and not line.lstrip().startswith("#") and row not in documented
    )


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_keeps_within_its_budget(room: str) -> None:
    lines = sum(lines_of_code(path) for module, path in modules().items() if room_of(module) == room)
    assert lines <= BUDGETS[room], f"{room} has {lines} lines of code: share or delete something"


def test_the_analysis_and_the_rules_are_as_few_lines_as_was_said() -> None:
    rooms = {module: path for module, path in modules().items() if room_of(module) in BUDGETS}
    assert sum(map(lines_of_code, rooms.values())) <= MOST_OF_READING
    assert len(rooms) <= MOST_MODULES
