import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpulint.rules import all_rules
from schemas import schemas, violations
from test_notebook_checking import save

from gpulint.claims import Claim
from gpulint.findings import Edit, Finding, Fix, Position, Related, Severity
from gpulint.reports import FORMATS, Report, writer
from gpulint.reports.layout import printable, width
from gpulint.reports.lint import changed_lines, finding_lines
from gpulint.reports.lint.services import fingerprints, job_summary
from gpulint.source.sources import Sources

SOURCE = """\
import torch

for x in data:
    total += loss
    losses.append(
        model(x),
    )
"""


def item_fix(row: int = 4, column: int = 14) -> Fix:
    edit = Edit(Position(row, column), Position(row, column + 4), "loss.item()")
    return Fix("safe", "add up `loss.item()`", (edit,))


def sample(path: str) -> list[Finding]:
    return [
        Finding(
            "GPU101",
            "held-graph",
            Severity.ERROR,
            "`total` holds the graph of every `loss`",
            path,
            4,
            5,
            4,
            18,
            "no `backward()` goes through it",
            "30 MiB",
            item_fix(),
            (Related(path, Position(1, 1), "made here"),),
            subject="total",
            claim=Claim("drift"),
        ),
        Finding(
            "GPU102", "device-accumulation", Severity.WARNING, "50 % <of> & memory, kept", path, 5, 5, 7, 6
        ),
        Finding("GPU000", "unreadable-file", Severity.ERROR, "no such\x1bfile", path + "x", 1, 1, 1, 1),
    ]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    file = tmp_path / "pkg" / "a b,é.py"
    file.write_text(SOURCE)
    return str(file)


def render(name: str, found: list[Finding], **options: Any) -> str:
    out = io.StringIO()
    writer(name)(Report(found, checked=3, rules=all_rules, **options), out)
    return out.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_something_for_nothing(name: str) -> None:
    text = render(name, [])
    if name in ("json", "gitlab"):
        assert json.loads(text) == []
    assert text.endswith("\n") or text == ""


def test_text(path: str) -> None:
    assert (
        render("text", sample(path))
        == """\
pkg/a b,é.py:4:5: error[GPU101] `total` holds the graph of every `loss`
  |
4 |     total += loss
  |     ^^^^^^^^^^^^^
  |
  = reason: no `backward()` goes through it
  = cost:   30 MiB
  = see:    pkg/a b,é.py:1:1: made here
  = fix:    add up `loss.item()` (safe)
            - total += loss
            + total += loss.item()

pkg/a b,é.py:5:5: warning[GPU102] 50 % <of> & memory, kept
  |
5 |     losses.append(
  |     ^^^^^^^^^^^^^^
6 |         model(x),
  |         ^^^^^^^^^
7 |     )
  |     ^

pkg/a b,é.pyx:1:1: error[GPU000] no such␛file

Found 3 findings (2 errors, 1 warning). 1 fixable with --fix.
"""
    )


def test_colour_says_the_same(path: str) -> None:
    import re

    coloured = render("text", sample(path), colour=True)
    assert "\x1b[1;91m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render("text", sample(path))


@pytest.mark.parametrize(
    ("found", "fixed", "unsafe", "line"),
    [
        ([], [], False, "No findings in 3 files."),
        ([], [1], False, "Fixed 1 finding; none left."),
        (["safe"], [], False, "Found 1 finding (1 error). 1 fixable with --fix."),
        (
            ["safe", "unsafe"],
            [],
            False,
            "Found 2 findings (2 errors). 1 fixable with --fix. 1 more with --fix --unsafe-fixes.",
        ),
        (["unsafe"], [], False, "Found 1 finding (1 error). 1 fixable with --fix --unsafe-fixes."),
        (["safe", "unsafe"], [], True, "Found 2 findings (2 errors). 2 fixable with --fix --unsafe-fixes."),
        ([None, None], [1, 2], False, "Fixed 2 findings, 2 left (2 errors)."),
    ],
)
def test_summary(found: list[Any], fixed: list[int], unsafe: bool, line: str) -> None:
    def made(kind: Any) -> Finding:
        fix = Fix(kind, "m", ()) if kind else None
        return Finding("GPU101", "x", Severity.ERROR, "m", "none.py", 1, 1, 1, 1, fix=fix)

    text = render("text", list(map(made, found)), fixed=[made(None) for _ in fixed], unsafe=unsafe)
    assert text.splitlines()[-1] == line
    assert line not in render("text", list(map(made, found)), quiet=True)


def underline(line: str, column: int, end: int) -> tuple[str, str]:
    found = Finding("GPU101", "x", Severity.ERROR, "m", "a.py", 1, column, 1, end)
    shown = ["".join(text for text, _ in item) for item in finding_lines(found, lambda _: [line])]
    return shown[2].removeprefix("1 | "), shown[3].removeprefix("  | ")


def test_underline_of_tabs_wide_and_combining_characters() -> None:
    assert underline("\ttotal += loss", 2, 15) == ("    total += loss", "    " + "^" * 13)
    assert underline("日本 = y", 6, 7) == ("日本 = y", " " * 7 + "^")
    line, marks = underline("名前 = 値 + loss", 10, 14)
    assert width(marks) - 4 == width(line[: line.index("loss")])
    line, marks = underline("e\u0301 = loss", 6, 10)
    assert width(line[: line.index("loss")]) == len(marks) - 4
    assert underline("x = 1", 6, 6) == ("x = 1", "     ^")
    assert underline("x = 1", 40, 50) == ("x = 1", "     ^")


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[31mb\x07\x7f\r") == "a␛[31mb␇␡␍"
    assert "\u202e" not in printable("a\u202eb")
    shown = underline("x = '\x1b[31m'; loss", 14, 18)
    assert "\x1b" not in shown[0]


@pytest.mark.parametrize("columns", [60, 100, 250])
@pytest.mark.parametrize("before", [0, 20, 300], ids=["first", "early", "late"])
@pytest.mark.parametrize("after", [0, 300], ids=["last", "more"])
def test_lines_take_the_width_of_the_terminal(columns: int, before: int, after: int) -> None:
    line = "値" * (before // 2) + "loss" + "x" * after
    edit = Edit(Position(1, 1), Position(1, 1), "y = ")
    fix = Fix("safe", "mend it", (edit,))
    start = before // 2 + 1
    found = Finding(
        "GPU101", "x", Severity.ERROR, "m", "a.py", 1, start, 1, start + 4, reason="a " * 300, fix=fix
    )
    shown = ["".join(text for text, _ in item) for item in finding_lines(found, lambda _: [line], columns)]
    widest = max(map(width, shown))
    assert widest <= columns
    assert widest >= columns - 2  # the reason is broken where the terminal ends
    excerpt = shown[2].removeprefix("1 | ")
    assert "loss" in excerpt
    if before + after > columns:
        assert "…" in excerpt
        assert width(excerpt) >= columns - 5  # what one side leaves over the other has
    else:
        assert excerpt == line


def test_spans_over_many_lines_are_shortened() -> None:
    found = Finding("GPU101", "x", Severity.ERROR, "m", "a.py", 1, 1, 40, 2)
    shown = [
        "".join(text for text, _ in item)
        for item in finding_lines(found, lambda _: [f"line{n}" for n in range(50)])
    ]
    assert len(shown) < 20
    assert "..." in shown


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([((2, 1), (2, 1), "del x\n")], [("+", "del x")]),
        (
            [((1, 2), (1, 2), ".item()"), ((2, 1), (2, 2), "B")],
            [("-", "a"), ("-", "b"), ("+", "a.item()"), ("+", "B")],
        ),
        ([], None),
        ([((9, 1), (9, 2), "x")], None),
    ],
)
def test_preview(edits: list[Any], expected: list[tuple[str, str]] | None) -> None:
    made = tuple(Edit(Position(*start), Position(*end), content) for start, end, content in edits)
    assert changed_lines(made, ["a", "b", "c"]) == expected


def test_concise(path: str) -> None:
    first, second, third, summary = render("concise", sample(path)).splitlines()
    assert first == "pkg/a b,é.py:4:5: GPU101 [*] `total` holds the graph of every `loss`"
    assert second == "pkg/a b,é.py:5:5: GPU102 50 % <of> & memory, kept"
    assert third.endswith("GPU000 no such␛file")
    assert summary.startswith("Found 3 findings")


def test_grouped(path: str) -> None:
    lines = render("grouped", sample(path)).splitlines()
    assert lines[:4] == [
        "pkg/a b,é.py:",
        "  4:5 GPU101 [*] `total` holds the graph of every `loss`",
        "  5:5 GPU102 50 % <of> & memory, kept",
        "",
    ]
    assert lines[4] == "pkg/a b,é.pyx:"
    assert lines[-1].startswith("Found 3 findings")
    apart = [replace(sample(path)[0], line=row) for row in (4, 104)]
    assert render("grouped", apart).splitlines()[1].startswith("  4:5   GPU101")


def test_pylint(path: str, tmp_path: Path) -> None:
    assert render("pylint", sample(path)).splitlines() == [
        "pkg/a b,é.py:4: [GPU101] `total` holds the graph of every `loss`",
        "pkg/a b,é.py:5: [GPU102] 50 % <of> & memory, kept",
        "pkg/a b,é.pyx:1: [GPU000] no such␛file",
    ]
    save(tmp_path / "book.ipynb", "x = 1", "y = 2")
    finding = replace(sample(path)[1], filename=str(tmp_path / "book.ipynb"), cell=3, line=1, end_line=1)
    row = (tmp_path / "book.ipynb").read_text().splitlines().index('    "y = 2"') + 1
    assert render("pylint", [finding]) == f"book.ipynb:{row}: [GPU102] cell 3, line 1: {finding.message}\n"


def test_json_comes_back_as_findings(path: str) -> None:
    found = sample(path)
    parsed = json.loads(render("json", found))
    assert [Finding.from_json(item) for item in parsed] == found
    lines = render("json-lines", found).splitlines()
    assert [json.loads(line) for line in lines] == parsed


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("text", "add up `loss.item()` (unsafe: `loss` may be an int)"),
        ("github", "Fix (unsafe: `loss` may be an int): add up `loss.item()`"),
        ("sarif", "add up `loss.item()` (unsafe: `loss` may be an int)"),
        ("json", '"unsafe_because": "`loss` may be an int"'),
    ],
)
def test_why_a_fix_is_unsafe_is_told(path: str, name: str, told: str) -> None:
    first, *others = sample(path)
    fix = replace(item_fix(), applicability="unsafe", unsafe_because="`loss` may be an int")
    found = [replace(first, fix=fix), *others]
    assert told in render(name, found)
    assert Finding.from_json(found[0].to_json()) == found[0]


def test_github(path: str) -> None:
    first, second, _ = render("github", sample(path)).splitlines()
    assert first.startswith(
        "::error title=GPU101 held-graph,file=pkg/a b%2Cé.py,line=4,endLine=4,col=5,endColumn=18::GPU101 `total`"
    )
    assert "%0A30 MiB%0AFix (safe): add up" in first
    assert second.startswith(
        "::warning title=GPU102 device-accumulation,file=pkg/a b%2Cé.py,line=5,endLine=7::"
    )
    assert "50 %25 <of>" in second


def test_the_summary_of_a_job(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_SERVER_URL", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    found = sample(path)
    rows = job_summary(Report(found)).splitlines()
    assert rows[0] == "### gpulint: 3 findings, 1 fixable with `--fix`"
    assert rows[4].startswith("| [GPU000](")
    assert rows[4].endswith(" unreadable-file | error | 1 | pkg/a b,é.pyx:1 |")
    assert rows[5].endswith(" held-graph | error | 1 | pkg/a b,é.py:4 |")
    monkeypatch.setenv("GITHUB_REPOSITORY", "one/two")
    monkeypatch.setenv("GITHUB_SHA", "abc")
    rows = job_summary(Report(found)).splitlines()
    address = "https://github.com/one/two/blob/abc/pkg/a%20b%2C%C3%A9.py"
    assert rows[5].endswith(f"| [pkg/a b,é.py:4]({address}#L4) |")
    assert rows[6].endswith(f"| [pkg/a b,é.py:5]({address}#L5-L7) |")
    many = [replace(found[0], line=row, end_line=row) for row in range(1, 31)]
    (row,) = (line for line in job_summary(Report(many)).splitlines() if "held-graph" in line)
    assert row.count("<br>") == 20
    assert row.endswith("<br>and 10 more |")
    assert job_summary(Report([])) == ""


def test_a_summary_stays_a_table_whatever_a_file_is_called(tmp_path: Path) -> None:
    finding = replace(sample(str(tmp_path / "a|b`<i>_c_.py"))[0])
    (row,) = (line for line in job_summary(Report([finding])).splitlines() if "held-graph" in line)
    assert row.replace("\\|", "").count("|") == 5
    assert "<i>" not in row


def test_gitlab(path: str) -> None:
    parsed = json.loads(render("gitlab", sample(path)))
    assert [item["severity"] for item in parsed] == ["major", "minor", "major"]
    assert parsed[0]["location"]["path"] == "pkg/a b,é.py"
    assert parsed[0]["location"]["positions"]["begin"] == {"line": 4, "column": 5}
    assert len({item["fingerprint"] for item in parsed}) == 3
    for item in parsed:  # what GitLab's documentation asks for
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= set(item)


def test_gitlab_paths_are_the_projects(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", os.getcwd())
    monkeypatch.chdir("pkg")
    assert json.loads(render("gitlab", sample(path)))[0]["location"]["path"] == "pkg/a b,é.py"


def test_junit(path: str) -> None:
    junitparser = pytest.importorskip("junitparser")
    parsed = junitparser.JUnitXml.fromstring(render("junit", sample(path)).encode())
    cases = [case for suite in parsed for case in suite]
    assert (parsed.tests, parsed.failures, len(cases)) == (3, 3, 3)
    assert cases[0].name == "GPU101 held-graph at 4:5"
    assert cases[0].result[0].message == "`total` holds the graph of every `loss`"
    assert cases[1].result[0].message == "50 % <of> & memory, kept"
    clean = junitparser.JUnitXml.fromstring(render("junit", []).encode())
    assert (clean.tests, clean.failures) == (1, 0)


def test_sarif(path: str) -> None:
    text = render("sarif", sample(path))
    parsed = json.loads(text)
    (schema,) = schemas("sarif-2.1.0.json")
    assert violations(schema, parsed) == []
    assert violations(schema, {**parsed, "version": "3"}) != []
    (run,) = parsed["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(
        {"GPU000", "GPU102", "GPU101"} | {r.code for r in all_rules()}
    )
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    first = run["results"][0]
    assert first["properties"] == {"confidence": "high", "subject": "total", "claim": {"kind": "drift"}}
    location = first["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "pkg/a%20b%2C%C3%A9.py", "uriBaseId": "SRCROOT"}
    assert location["region"] == {"startLine": 4, "startColumn": 5, "endLine": 4, "endColumn": 18}
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {
        "text": "loss.item()"
    }
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in steps] == ["made here", sample(path)[0].message]
    assert violations(schema, json.loads(render("sarif", []))) == []


def test_fingerprints_follow_the_code(tmp_path: Path) -> None:
    def of(text: str, *rows: int) -> list[str]:
        file = tmp_path / "a.py"
        file.write_text(text)
        found = [Finding("GPU101", "x", Severity.ERROR, "m", str(file), row, 1, row, 2) for row in rows]
        return fingerprints(found, Sources())

    before = of("a += x\n\na += x\nb += y\n", 1, 3, 4)
    assert len(set(before)) == 3
    assert of("# new\nif z:\n    a += x\n    a += x\n    b += y\n", 3, 4, 5) == before
    assert of("a += w\n", 1)[0] not in before
