"""Nothing is claimed that is not measured: every figure of a rule's costs is one of the evidence's, as printed.

The evidence is what `benchmarks/evidence.py` wrote on the GPU. A figure is borne by a value of a case of the rule's own
code, or of a code that its *What it costs* section names; a ratio or a difference, by two variants of one case.
"""

import ast
import functools
import itertools
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "benchmarks/results/evidence-nvidia-h200-2026-11-21.json"
KIT = ROOT / "benchmarks/results/kit-nvidia-h200-2026-11-21.json"
BYTES = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
TIMES = {"ms": 1.0, "s": 1e-3, "µs": 1e3}
COUNTS = ("retries", "warnings", "errors", "aborts", "settings", "names")
NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = "|".join((*BYTES, *TIMES, *COUNTS, "%", "times"))
BETWEEN = r"against|instead of|to|and|or|than|->|→|–"
# A number has the unit that follows it, or the one that follows the last number of "1.56 against 1.15 GiB".
FIGURE = re.compile(rf"(?<![\w.])({NUMBER})(?=(?:\s+(?:{BETWEEN})\s+{NUMBER})*\s?({UNIT})(?!\w))")
NOT_MEASURED = re.compile(r"`[^`]*`|torch\s+\d+\.\d+|Python\s+\d+\.\d+|GPU\d{3}")

# (code, figure): why it may stand there although no case of the evidence has it.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("GPU503", "5 ms"): "the work that was given to the host",
    ("GPU503", "10 ms"): "the work that was given to the host",
    ("GPU601", "8 GiB"): "the memory limit that was set",
    **dict.fromkeys((("forecast.md", said) for said in ("10 s",)), "an example of what the command prints"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is printed, and its unit."""

    number: str
    unit: str

    def __str__(self) -> str:
        return f"{self.number} {self.unit}"

    def is_print_of(self, value: float) -> bool:
        """Whether `value`, in this figure's unit, is printed so."""
        decimals = len(self.number.partition(".")[2])
        return f"{value:.{decimals}f}" == self.number.replace(",", "")

    def changed(self, by: int) -> "Figure":
        """With the last digit one higher or lower."""
        decimals = len(self.number.partition(".")[2])
        return Figure(f"{float(self.number.replace(',', '')) + by * 10**-decimals:.{decimals}f}", self.unit)


@dataclass(frozen=True, slots=True)
class Text:
    """What is checked: a piece of text, and the codes whose evidence may bear its figures."""

    where: str
    code: str
    text: str
    codes: frozenset[str]

    def figures(self) -> list[Figure]:
        return [Figure(match[1], match[2]) for match in FIGURE.finditer(NOT_MEASURED.sub("…", self.text))]

    def bare(self) -> list[str]:
        """Numbers with decimals that have no unit, so that nobody could check them."""
        rest = FIGURE.sub("", NOT_MEASURED.sub("…", self.text))
        return re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", rest)


@functools.cache
def quantities() -> dict[str, list[tuple[str, list[float]]]]:
    """By code: kind of quantity ("bytes", "slope", "ms" or a count's name) and its values over the variants of one case."""
    found: dict[str, list[tuple[str, list[float]]]] = {}
    for case in json.loads(EVIDENCE.read_text())["cases"]:
        variants = [variant for variant in case["variants"].values() if "error" not in variant]
        columns: dict[tuple[str, str], list[float]] = {}
        for variant in variants:
            for name in ("peak", "reserved"):
                if variant.get(name) is not None:
                    columns.setdefault(("bytes", name), []).append(variant[name])
            for name in ("drift", "host_drift"):
                if variant.get(name) is not None:
                    columns.setdefault(("slope", name), []).append(variant[name])
            if variant.get("ms") is not None:
                columns.setdefault(("ms", "ms"), []).append(variant["ms"])
            for name, value in (variant.get("notes") or {}).items():
                unit = name.rpartition(", ")[2] if ", " in name else "bytes"
                columns.setdefault((unit, name), []).append(value)
        found.setdefault(case["code"], []).extend((kind, values) for (kind, _), values in columns.items())
    return found


def candidates(figure: Figure, codes: frozenset[str]) -> Iterator[float]:
    """All that the evidence of `codes` can say in the figure's unit. Growth a step is neither compared nor subtracted."""
    columns = [column for code in sorted(codes) for column in quantities().get(code, [])]
    for kind, values in columns:
        pairs = list(itertools.permutations(values, 2)) if kind != "slope" else []
        if figure.unit == "%":
            yield from (100 * (a - b) / b for a, b in pairs if b and a > b)
            yield from (100 * (b - a) / b for a, b in pairs if b and a < b)
        elif figure.unit == "times":
            yield from (a / b for a, b in pairs if b > 0 and a > b)
        elif (kind in ("bytes", "slope") and figure.unit in BYTES) or (kind == "ms" and figure.unit in TIMES):
            scale = TIMES[figure.unit] if kind == "ms" else 1 / BYTES[figure.unit]
            yield from (scale * value for value in values)
            yield from (scale * (a - b) for a, b in pairs if a > b)
        elif kind == figure.unit:
            yield from values


def is_borne(figure: Figure, codes: frozenset[str]) -> bool:
    return any(figure.is_print_of(value) for value in candidates(figure, codes))


def measured_by_the_kit(found: object) -> Iterator[float]:
    """Every number in what `benchmarks/kit_gpu.py` wrote: bytes, seconds, milliseconds and microseconds."""
    if isinstance(found, dict | list):
        for value in found.values() if isinstance(found, dict) else found:
            yield from measured_by_the_kit(value)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield float(found)


# -- where figures are quoted --------------------------------------------------------------------------------


def strings(tree: ast.Module) -> list[ast.Constant]:
    """Every string of a module but its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [node for node in constants if isinstance(node.value, str) and id(node) not in docstrings]


def rule_texts() -> list[Text]:
    """Each rule's page without its code, and each string of its module."""
    found = []
    for path in sorted((ROOT / "rules").glob("gpu[0-9]*.py")):
        code, tree = path.stem[:6].upper(), ast.parse(path.read_text())
        page = next(
            doc for node in tree.body if isinstance(node, ast.ClassDef) and (doc := ast.get_docstring(node))
        )
        costs = re.split(r"^## (.+)$", textwrap.dedent(page), flags=re.MULTILINE)
        named = costs[costs.index("What it costs") + 1]
        codes = frozenset({code, *re.findall(r"GPU\d{3}", named)})
        prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        found.append(Text(f"{path.name}, page", code, prose, codes))
        found += [Text(f"{path.name}:{node.lineno}", code, str(node.value), codes) for node in strings(tree)]
    for name, code in (("report", "GPU101"), ("averages", "GPU107")):
        for node in strings(ast.parse((ROOT / f"rules/_held/{name}.py").read_text())):
            found.append(Text(f"_held/{name}.py:{node.lineno}", code, str(node.value), frozenset({code})))
    return found


def other_texts() -> list[Text]:
    """What the project quotes elsewhere: the allocator's advice, the README, the pages in docs/."""
    everything = frozenset(quantities())
    found = []
    for name in ("gpulint/memory/oom/advice.py", "gpulint/memory/alloc_conf.py"):
        path = ROOT / name
        for node in strings(ast.parse(path.read_text())):
            found.append(Text(f"{name}:{node.lineno}", path.name, str(node.value), everything))
    advice = ROOT / "gpulint/memory/oom/advice.json"
    for number, line in enumerate(advice.read_text(encoding="utf-8").splitlines(), 1):
        found.append(Text(f"{advice.name}:{number}", "advice.py", line, everything))
    readme = (ROOT / "README.md").read_text()
    for line in readme.splitlines():
        if line.lstrip().startswith("= cost:"):
            found.append(Text("README.md, a finding", "README.md", line, everything))
    measured = readme.partition("## What it costs, measured")[2].partition("\n## ")[0]
    found += [Text("README.md, costs", "README.md", line, everything) for line in measured.splitlines()]
    for path in sorted((ROOT / "docs").glob("*.md")):
        for line in path.read_text().splitlines():
            if "H200" in line or re.search(r"reserved \S+ ->|peak (\S+ ->|-)", line):
                found.append(Text(f"docs/{path.name}", path.name, line, everything))
    return found


ALL = [text for text in (*rule_texts(), *other_texts()) if text.figures() or text.bare()]


@pytest.mark.parametrize("text", ALL, ids=lambda text: text.where)
def test_every_figure_is_borne_by_the_evidence(text: Text) -> None:
    strangers = [
        str(figure)
        for figure in text.figures()
        if not is_borne(figure, text.codes) and (text.code, str(figure)) not in EXCEPTIONS
    ]
    assert not strangers, f"{text.where}: no case of {sorted(text.codes)} gives {strangers}"


@pytest.mark.parametrize("text", ALL, ids=lambda text: text.where)
def test_no_figure_goes_without_its_unit(text: Text) -> None:
    assert not text.bare(), f"{text.where}: {text.bare()} have no unit"


def test_the_page_of_the_kit_quotes_the_kits_figures() -> None:
    page = (ROOT / "docs/memory.md").read_text()
    section = page.partition("### What the usual helper frees")[2].partition("\n###")[0]
    figures = Text("docs/memory.md", "docs", section, frozenset()).figures()
    assert len(figures) > 15
    values = list(measured_by_the_kit(json.loads(KIT.read_text())))
    scales = {"s": (1.0,), "ms": (1.0, 1e3), "µs": (1.0, 1e6)} | {
        name: (1 / size,) for name, size in BYTES.items()
    }
    strangers = [
        str(figure)
        for figure in figures
        if not any(figure.is_print_of(value * scale) for value in values for scale in scales[figure.unit])
    ]
    assert not strangers


def test_every_exception_is_in_use() -> None:
    used = {(text.code, str(figure)) for text in ALL for figure in text.figures()}
    assert set(EXCEPTIONS) <= used
    assert not [key for key in EXCEPTIONS if not EXCEPTIONS[key].strip()]


def test_every_rule_quotes_a_figure() -> None:
    """Every rule's page says what was measured."""
    quoting = {text.code for text in rule_texts() if text.where.endswith(", page") and text.figures()}
    assert {path.stem[:6].upper() for path in (ROOT / "rules").glob("gpu[0-9]*.py")} == quoting


@pytest.mark.parametrize(
    "rule", [rule for rule in all_rules() if hasattr(rule, "habit")], ids=lambda rule: rule.code
)
def test_the_slowdown_that_is_divided_is_measured(rule: type[Rule]) -> None:
    assert is_borne(Figure(f"{rule.habit.slowdown:.12g}", "times"), frozenset({rule.code}))  # type: ignore[attr-defined]


def test_a_changed_figure_is_noticed() -> None:
    """One more or one less in its last digit, and the evidence no longer bears a rule's figure, with few accidents."""
    figures = {
        (text.codes, figure) for text in rule_texts() for figure in text.figures() if figure.number != "0"
    }
    assert len(figures) > 80
    tried = [(codes, figure, figure.changed(by)) for codes, figure in figures for by in (1, -1)]
    missed = [f"{figure} as {other}" for codes, figure, other in tried if is_borne(other, codes)]
    assert len(missed) < 0.07 * len(tried), missed
