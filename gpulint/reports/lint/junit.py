"""JUnit XML: a suite for each file, a failed case for each finding; one passing case where there is none."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO
from xml.etree import ElementTree

from gpulint.findings import Finding
from gpulint.reports import Report, details, place, shown
from gpulint.source.sources import Sources


def write(report: Report, out: TextIO) -> None:
    number = str(len(report.findings))
    root = ElementTree.Element("testsuites", name="gpulint", tests=number, failures=number, errors="0")
    for path, group in groupby(report.findings, key=lambda finding: finding.filename):
        _suite(root, _clean(shown(path)), list(group), report.sources)
    if not report.findings:
        root.set("tests", "1")
        suite = ElementTree.SubElement(
            root, "testsuite", name="gpulint", tests="1", failures="0", errors="0", skipped="0", time="0"
        )
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="gpulint", time="0")
    ElementTree.indent(root)
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    out.write(ElementTree.tostring(root, encoding="unicode") + "\n")


def _suite(root: ElementTree.Element, path: str, findings: list[Finding], sources: Sources) -> None:
    number = str(len(findings))
    suite = ElementTree.SubElement(
        root, "testsuite", name=path, tests=number, failures=number, errors="0", skipped="0", time="0"
    )
    for finding in findings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            name=f"{finding.code} {finding.name} at {place(finding)}",
            classname=path.removesuffix(".py").removesuffix(".ipynb").replace("/", "."),
            file=path,
            line=str(sources.file_rows(finding)[0]),
            time="0",
        )
        failure = ElementTree.SubElement(
            case, "failure", message=_clean(finding.message), type=f"{finding.severity.value} {finding.code}"
        )
        parts = [f"{path}:{place(finding)}", finding.message, *details(finding), finding.url]
        failure.text = "\n".join(map(_clean, parts))


def _clean(text: str) -> str:
    """`text` without characters that XML 1.0 has no way to write."""
    return "".join(letter if _is_xml(ord(letter)) else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _is_xml(code: int) -> bool:
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
