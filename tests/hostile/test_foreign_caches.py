"""A repository may come with anything in the place of a cache."""

from __future__ import annotations

import os
from pathlib import Path

from support import HELD, gpulint


def test_a_cache_that_leads_elsewhere_sweeps_nothing_there(clone: Path, outside: Path) -> None:
    (clone / "train.py").write_text(HELD)
    os.symlink(outside, clone / ".gpulint_cache")
    for isolated in ((), ("--isolated",)):
        assert gpulint(".", *isolated, cwd=clone).returncode == 1
