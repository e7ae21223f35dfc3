"""SARIF 2.1.0, for code scanning: rules with their documentation, findings with fixes, fingerprints and code flows."""

from __future__ import annotations

import inspect
import json
import os
from typing import Any, TextIO
from urllib.parse import quote

from gpulint.findings import DOCS_URL, Finding, Fix, Position, Related, Severity
from gpulint.lint.selection import BUILT_IN
from gpulint.reports import Report, checkout, details, full, in_cell, in_checkout
from gpulint.reports.lint.services import fingerprints
from gpulint.source.sources import Sources
from gpulint.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write_sarif(report: Report, out: TextIO) -> None:
    rules = _rules(report)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    names = fingerprints(report.findings, report.sources)
    driver = {
        "name": "gpulint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": DOCS_URL.removesuffix("rules/"),
        "rules": rules,
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": _uri(checkout()).rstrip("/") + "/"}},
        "results": [
            _result(finding, name, index, report.sources)
            for finding, name in zip(report.findings, names, strict=True)
        ],
    }
    out.write(json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n")


def _rules(report: Report) -> list[dict[str, Any]]:
    """Every rule in force, and whatever else a finding names, in the order of codes."""
    named = {one.code: (BUILT_IN.get(one.code, one.name), one.severity, "") for one in report.findings[::-1]}
    for rule in report.rules():
        named[rule.code] = (rule.name, rule.severity, inspect.cleandoc(rule.__doc__ or rule.name))
    return [_descriptor(code, *named[code]) for code in sorted(named)]


def _descriptor(code: str, name: str, severity: Severity, text: str) -> dict[str, Any]:
    described = {
        "id": code,
        "name": "".join(word.title() for word in name.split("-")),
        "shortDescription": {"text": name.replace("-", " ")},
        "helpUri": f"{DOCS_URL}{code}",
        "defaultConfiguration": {"level": severity.word},
        "properties": {"tags": ["memory", "performance"], "precision": "very-high"},
    }
    return described | ({"help": {"text": text, "markdown": text}} if text else {})


def _result(finding: Finding, fingerprint: str, index: dict[str, int], sources: Sources) -> dict[str, Any]:
    text = " ".join(_sentence(part) for part in (finding.message, *details(finding)))
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": finding.severity.word,
        "message": {"text": in_cell(finding) + text},
        "locations": [_place(finding, sources)],
        "partialFingerprints": {"gpulint/v1": fingerprint},
        "properties": {"confidence": finding.confidence.value},
    }
    if finding.subject:
        result["properties"]["subject"] = finding.subject
    if finding.claim is not None:
        result["properties"]["claim"] = finding.claim.to_json()
    if finding.doubts:
        result["properties"]["doubts"] = list(finding.doubts)
    if finding.related:
        result["relatedLocations"] = [_related(other, sources) for other in finding.related]
        result["codeFlows"] = [{"threadFlows": [{"locations": _flow(finding, sources)}]}]
    # Edits count in cells; those of a notebook's JSON would be others.
    if finding.fix is not None and finding.cell is None:
        result["fixes"] = [_fix(finding.filename, finding.fix)]
    return result


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _place(finding: Finding, sources: Sources) -> dict[str, Any]:
    if finding.cell is None:
        return _location(finding.filename, _region(finding.start, finding.end))
    first, last = sources.file_rows(finding)
    location = _location(finding.filename, {"startLine": first, "endLine": last})
    location["logicalLocations"] = [{"name": f"cell {finding.cell}", "kind": "module"}]
    return location


def _flow(finding: Finding, sources: Sources) -> list[dict[str, Any]]:
    """From the places that led to the finding to the finding itself."""
    last = {**_place(finding, sources), "message": {"text": finding.message}}
    return [{"location": step} for step in (*(_related(other, sources) for other in finding.related), last)]


def _related(other: Related, sources: Sources) -> dict[str, Any]:
    row, text = other.position.row, other.message
    region = {"startLine": row, "startColumn": other.position.column}
    if other.cell is not None:
        region = {"startLine": sources.file_row(other.filename, other.cell, row)}
        text = f"cell {other.cell}, line {row}: {text}"
    return {**_location(other.filename, region), "message": {"text": text}}


def _fix(path: str, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.content}}
        for edit in fix.edits
    ]
    return {
        "description": {"text": f"{fix.message} ({fix.safety})"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }


def _location(path: str, region: dict[str, int]) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": region}}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _artifact(path: str) -> dict[str, str]:
    if path.startswith("<"):
        return {"uri": quote(path)}
    relative = in_checkout(path)
    if relative is None:
        return {"uri": _uri(full(path))}
    return {"uri": quote(relative, errors="surrogateescape"), "uriBaseId": "SRCROOT"}


def _uri(path: str) -> str:
    slashed = path.replace(os.sep, "/")
    return "file://" + quote(slashed if slashed.startswith("/") else f"/{slashed}", errors="surrogateescape")
