"""Bad and good examples of every rule: step functions on small but realistic models, and programs of their own."""

from __future__ import annotations

from evidence_cases import built, contexts, gradients, held, modes, newcomers, parts, processes, release, slow
from evidence_cases.setup import Case

PROCESS_CASES = [*processes.CASES, *contexts.CASES]


def all_cases() -> list[Case]:
    """Every case that runs in the measuring process, by code."""
    modules = (held, modes, gradients, release, slow, newcomers, built, parts)
    return sorted((case for module in modules for case in module.CASES), key=lambda case: case.code)
