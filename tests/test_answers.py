"""Every answer to every question in every case and fixture, as `gpulint explain` gives it: kept in `answers/`, one file a
folder of programs.

The labels of a case say what is to be told. How the analysis comes to it, and why it is silent elsewhere, is here, so that a
change of a question shows all that it changes. A line is a claim, with its place, its code, what became of it, the fix
that is offered, and each answer with its clause, and the row that says so where that is another one; or it is what a
finding says, or what its fix writes where:

    12:9 GPU101 told (safe): tensor yes@4 (`net` made it), graph yes (…), backward no@30 (…)
    12:9 GPU101 says (error): `losses` keeps `loss` …
    12:9 GPU101 fixes 12:23-12:27: 'loss.item()'

`python tests/test_answers.py` writes the files anew: read what git shows of them before you commit it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from test_cases import FOUND, Case, all_cases, due, implemented, laid_out, read_case, rule_set

from gpulint.findings import Finding
from gpulint.lint.explaining import SIGNS, Explained, explain_module

ANSWERS = Path(__file__).parent / "answers"
# Rules that ask the engine: the labels of the cases say what they tell, and no words of theirs are frozen.
MOVED = frozenset(rule.code for rule in all_rules() if rule.asks)
FIXTURES = Path(__file__).parents[1] / "fixtures"


def told(case: Case) -> list[str]:
    """The claims in a case, and what its findings say and mend, a line each."""
    explanations = [explain_module(text, name, rule_set()) for name, text in laid_out(case)]
    found = FOUND[case.path, case.text] = [one for _, each in explanations for one in each]
    fixes = {(Path(one.filename).name, one.line, one.column, one.code): one for one in found}
    claims = [
        spelled(one, fixes.get((Path(one.filename).name, one.row, one.column, one.code)))
        for claimed, _ in explanations
        for one in claimed
        if one.code not in MOVED
    ]
    return claims + [line for one in found if one.code not in MOVED for line in said(one)]


def said(found: Finding) -> Iterator[str]:
    """The texts of a finding, and the edits of its fix."""
    place = f"{found.line}:{found.column} {found.code}"
    texts = [found.message, found.reason, found.cost, *(f"doubt: {doubt}" for doubt in found.doubts)]
    texts += [f"{other.position.row}: {other.message}" for other in found.related]
    if found.fix is not None:
        texts += [found.fix.message, found.fix.unsafe_because]
    yield f"{place} says ({found.severity.value}): {'; '.join(filter(None, texts))}"
    for edit in found.fix.edits if found.fix is not None else ():
        where = f"{edit.start.row}:{edit.start.column}-{edit.end.row}:{edit.end.column}"
        yield f"{place} fixes {where}: {edit.content!r}"


def spelled(one: Explained, found: Finding | None) -> str:
    offered = f" ({found.fix.applicability})" if found is not None and found.fix is not None else ""
    answers = ", ".join(
        f"{because.answer.question.value} {SIGNS[because.answer.verdict]}"
        + (f"@{because.row}" if because.row != one.row else "")
        + f" ({because.answer.clause})"
        for because in one.answers
    )
    return f"{one.row}:{one.column} {one.code} {one.outcome}{offered}: {answers or 'no answers'}"


def file_of(question: str) -> Path:
    return ANSWERS / f"{question}.txt"


def written(question: str, of: dict[str, list[str]]) -> str:
    """The text of one file of `answers/`."""
    parts = (f"{name}\n" + "".join(f"    {line}\n" for line in lines) for name, lines in sorted(of.items()))
    return f"# {question}: written by `python tests/test_answers.py`\n" + "".join(parts)


def read(path: Path) -> dict[str, list[str]]:
    """The claims that a file of `answers/` holds, by case."""
    held: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            lines.append(line.strip())
        elif not line.startswith("#"):
            lines = held[line] = []
    return held


def programs() -> dict[str, dict[str, Case]]:
    """The cases that are due, and the fixtures of one file, by folder and name."""
    found: dict[str, dict[str, Case]] = {case.question: {} for case in all_cases()}
    for case in due(implemented()):
        found[case.question][case.name] = case
    found["fixtures"] = {f"fixtures/{path.name}": read_case(path) for path in sorted(FIXTURES.glob("*.py"))}
    return found


@pytest.mark.parametrize("question", sorted(programs()))
def test_the_answers_are_those_that_were_read(question: str) -> None:
    kept = read(file_of(question))
    now = {name: told(case) for name, case in programs()[question].items()}
    assert kept.keys() == now.keys(), "cases came or went: python tests/test_answers.py"
    changed = [
        f"{name}\n"
        + "\n".join(
            [f"  - {line}" for line in kept[name] if line not in lines]
            + [f"  + {line}" for line in lines if line not in kept[name]]
        )
        for name, lines in now.items()
        if lines != kept[name]
    ]
    assert not changed, "\n".join([*changed, "If that is as it should be: python tests/test_answers.py"])


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    of = {"size/GPU101_ok_a.py": [], "size/GPU101_bug_b.py": ["3:5 GPU101 told: tensor yes@2"]}
    (tmp_path / "size.txt").write_text(written("size", of))
    assert read(tmp_path / "size.txt") == of


def main() -> None:
    ANSWERS.mkdir(exist_ok=True)
    for question, of in programs().items():
        told_of = {name: told(case) for name, case in of.items()}
        file_of(question).write_text(written(question, told_of), encoding="utf-8")
    print(f"{sum(map(len, programs().values()))} programs: answers written to {ANSWERS}")


if __name__ == "__main__":
    sys.exit(main())
