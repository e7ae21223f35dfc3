"""Bad and good examples of every rule, as step functions on small but realistic models."""

from __future__ import annotations

from evidence_cases import held, modes, release
from evidence_cases.setup import Case


def all_cases() -> list[Case]:
    """Every case, by code."""
    found = [*held.CASES, *modes.CASES, *release.CASES]
    return sorted(found, key=lambda case: case.code)
