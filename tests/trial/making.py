"""Fixes made by hand, as the linter would hand them over."""

from pathlib import Path

from gpulint.claims import Claim
from gpulint.findings import Edit, Finding, Fix, Severity
from gpulint.source.edits import LineIndex
from gpulint.trial.plan import TrialFix, fixes_of


def finding(
    path: Path, old: str, new: str, safe: bool = True, claim: Claim | None = None, encoding: str = "utf-8"
) -> Finding:
    """A finding whose fix puts `new` where `old` stands, which is in one place."""
    text = path.read_bytes().decode(encoding)
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
    index, offset = LineIndex(text), text.index(old)
    start, end = index.position(offset), index.position(offset + len(old))
    shown = index.position(offset + len(old) - len(old.lstrip()))
    fix = Fix(
        "safe" if safe else "unsafe", "made by hand", (Edit(start, end, new),), "" if safe else "a doubt"
    )
    place = (shown.row, shown.column, end.row, end.column)
    return Finding(
        "GPU999", "made", Severity.WARNING, "made by hand", str(path), *place, fix=fix, claim=claim
    )


def fixes(*found: Finding) -> list[TrialFix]:
    return fixes_of(found)
