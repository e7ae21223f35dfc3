"""The formats that programs read: CI services' own, JUnit XML, and lists of findings as JSON or as lines."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final, TextIO
from urllib.parse import quote
from xml.etree import ElementTree

from gpulint.findings import Finding, Severity
from gpulint.reports import Report, details, full, in_cell, in_checkout, place, plural, shown_path
from gpulint.reports.document import Cell, Table, Value
from gpulint.reports.layout import printable
from gpulint.reports.markdown import table
from gpulint.source.sources import Sources


def write_json(report: Report, out: TextIO) -> None:
    """The shape of ruff's JSON: a list of findings, file names absolute."""
    out.write(json.dumps(list(map(_as_json, report.findings)), indent=2) + "\n")


def write_json_lines(report: Report, out: TextIO) -> None:
    """One object a line."""
    out.writelines(json.dumps(_as_json(finding)) + "\n" for finding in report.findings)


def _as_json(finding: Finding) -> dict[str, Any]:
    data = finding.to_json()
    for one in (data, *data["related"]):
        one["filename"] = full(one["filename"])
    return data


def write_pylint(report: Report, out: TextIO) -> None:
    """One line a finding, ``path:row: [CODE] message``, for what reads pylint's reports; rows are those of the file."""
    for one in report.findings:
        where = f"{shown_path(one.filename)}:{report.sources.file_rows(one)[0]}"
        out.write(printable(f"{where}: [{one.code}] {in_cell(one)}{one.message}") + "\n")


def fingerprints(findings: Iterable[Finding], sources: Sources) -> list[str]:
    """For each finding a hash of its code, file, the text of its lines without indentation, and its rank
    among equals.

    Lines added above, a changed indentation or a reworded message leave it as it is.
    """
    seen: Counter[str] = Counter()
    found: list[str] = []
    for finding in findings:
        lines = sources.of(finding)[finding.line - 1 : finding.end_line]
        text = "\n".join(line.strip() for line in lines)
        path = shown_path(finding.filename).replace("\\", "/")
        content = "\0".join((finding.code, path, text))
        digest = hashlib.sha256(f"{content}\0{seen[content]}".encode("utf-8", "surrogatepass"))
        seen[content] += 1
        found.append(digest.hexdigest()[:32])
    return found


# -- GitHub ----------------------------------------------------------------------------------------------------

_GITHUB_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write_github(report: Report, out: TextIO) -> None:
    """Workflow commands: GitHub shows each as an annotation on the changed lines."""
    for finding in report.findings:
        first, last = report.sources.file_rows(finding)
        properties: dict[str, object] = {
            "title": f"{finding.code} {finding.name}",
            "file": in_checkout(finding.filename) or shown_path(finding.filename),
            "line": first,
            "endLine": last,
        }
        # Columns of an annotation over several lines are refused, and those of a cell are none of the notebook's JSON.
        if first == last and finding.cell is None:
            properties |= {"col": finding.column, "endColumn": max(finding.end_column, finding.column + 1)}
        parts = [f"{finding.code} {in_cell(finding)}{finding.message}", *details(finding)]
        if finding.fix is not None:
            parts.append(f"Fix ({finding.fix.safety}): {finding.fix.message}")
        told = {name: _data(str(value)) for name, value in properties.items()}
        listed = ",".join(f"{k}={v.replace(':', '%3A').replace(',', '%2C')}" for k, v in told.items())
        out.write(f"::{_GITHUB_LEVELS[finding.severity]} {listed}::{_data(chr(10).join(parts))}\n")


def _data(text: str) -> str:
    text = "\n".join(map(printable, text.split("\n")))  # the log of a job is a terminal, too
    return text.replace("%", "%25").replace("\n", "%0A")


_MOST_PLACES: Final = 20  # of one rule; GitHub refuses a summary of more than 1 MiB


def job_summary(report: Report) -> str:
    """A job's summary, which GitHub shows on its page: the findings by rule, each place a link to its lines; empty where there is
    nothing to say."""
    found = report.findings
    if not found:
        return ""
    fixable = sum(finding.is_mended(report.unsafe) for finding in found)
    title = f"### gpulint: {plural(len(found), 'finding')}{f', {fixable} fixable with `--fix`' if fixable else ''}"
    rows: list[tuple[Value, ...]] = []
    for code in sorted({finding.code for finding in found}):
        alike = [finding for finding in found if finding.code == code]
        severities = ", ".join(level.word for level in Severity if level in {f.severity for f in alike})
        first, *places = [_linked(finding, report) for finding in alike[:_MOST_PLACES]]
        places += [f"and {len(alike) - _MOST_PLACES} more"] if len(alike) > _MOST_PLACES else []
        rule = f"[{code}]({alike[0].url}) {alike[0].name}"
        rows.append((rule, severities, str(len(alike)), Cell(first, more=tuple(places))))
    return "\n".join((title, "", *table(Table(("rule", "severity", "findings", "where"), rows)), ""))


def _linked(finding: Finding, report: Report) -> str:
    """File and line, as a link where the job says which repository and commit it works on."""
    path = in_checkout(finding.filename)
    told = _escaped(f"{path or shown_path(finding.filename)}:{place(finding).rpartition(':')[0]}")
    repository, commit = os.environ.get("GITHUB_REPOSITORY"), os.environ.get("GITHUB_SHA")
    if path is None or not repository or not commit:
        return told
    first, last = report.sources.file_rows(finding)
    lines = f"L{first}" if first == last else f"L{first}-L{last}"
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    plain = "?plain=1" if path.endswith(".ipynb") else ""  # a notebook that is drawn has no lines
    return f"[{told}]({server}/{repository}/blob/{commit}/{quote(os.fsencode(path))}{plain}#{lines})"


def _escaped(text: str) -> str:
    """Text that stays as it is in Markdown."""
    return re.sub(r"[\\\[\]_*`~]", r"\\\g<0>", printable(text))


# -- GitLab ----------------------------------------------------------------------------------------------------

_GITLAB_LEVELS: Final = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write_gitlab(report: Report, out: TextIO) -> None:
    """GitLab's code quality report: the subset of the Code Climate format that it reads."""
    listed = []
    for finding, name in zip(report.findings, fingerprints(report.findings, report.sources), strict=True):
        first, last = report.sources.file_rows(finding)
        start, end = (1, 1) if finding.cell is not None else (finding.column, finding.end_column)
        # As GitLab matches it to the merge request
        path = in_checkout(finding.filename) or full(finding.filename).replace(os.sep, "/")
        begins, ends = {"line": first, "column": start}, {"line": last, "column": end}
        listed.append(
            {
                "type": "issue",
                "check_name": f"{finding.code} {finding.name}",
                "description": f"{finding.code} {in_cell(finding)}{finding.message}",
                "content": {"body": "\n\n".join((finding.message, *details(finding)))},
                "categories": ["Performance"],
                "severity": _GITLAB_LEVELS[finding.severity],
                "fingerprint": name,
                "location": {"path": path, "positions": {"begin": begins, "end": ends}},
            }
        )
    out.write(json.dumps(listed, indent=2) + "\n")


# -- JUnit -----------------------------------------------------------------------------------------------------

_NOT_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def write_junit(report: Report, out: TextIO) -> None:
    """A suite for each file, a failed case for each finding; one passing case where there is none."""
    number = str(len(report.findings))
    tests = str(len(report.findings) or 1)
    root = ElementTree.Element("testsuites", name="gpulint", tests=tests, failures=number, errors="0")
    for name, group in groupby(report.findings, key=lambda finding: finding.filename):
        path, findings = _clean(shown_path(name)), list(group)
        suite = _suite(root, path, len(findings), len(findings))
        for finding in findings:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=f"{finding.code} {finding.name} at {place(finding)}",
                classname=path.removesuffix(".py").removesuffix(".ipynb").replace("/", "."),
                file=path,
                line=str(report.sources.file_rows(finding)[0]),
                time="0",
            )
            kind = f"{finding.severity.value} {finding.code}"
            failure = ElementTree.SubElement(case, "failure", message=_clean(finding.message), type=kind)
            parts = [f"{path}:{place(finding)}", finding.message, *details(finding), finding.url]
            failure.text = "\n".join(map(_clean, parts))
    if not report.findings:
        suite = _suite(root, "gpulint", 1, 0)
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="gpulint", time="0")
    ElementTree.indent(root)
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    out.write(ElementTree.tostring(root, encoding="unicode") + "\n")


def _suite(root: ElementTree.Element, name: str, tests: int, failures: int) -> ElementTree.Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": "0", "time": "0"}
    return ElementTree.SubElement(root, "testsuite", {"name": name, **counts})


def _clean(text: str) -> str:
    """`text` without characters that XML 1.0 has no way to write."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
