"""Names for findings that stay the same when code moves, for formats and baselines that compare two runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from gpulint.findings import Finding
from gpulint.reports import shown
from gpulint.source.sources import Sources


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
        path = shown(finding.filename).replace("\\", "/")
        content = "\0".join((finding.code, path, text))
        digest = hashlib.sha256(f"{content}\0{seen[content]}".encode("utf-8", "surrogatepass"))
        seen[content] += 1
        found.append(digest.hexdigest()[:32])
    return found
