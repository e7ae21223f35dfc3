"""Wrong fixes that look right are rejected, to the last one, and each is told as gpulint's defect."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import finding, fixes
from planted import PLANTS, Plant

from gpulint.runtime.parent.runner import Run
from gpulint.trial.trying import Execute, try_fixes


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_a_wrong_fix_is_rejected(plant: Plant, execute: Execute, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(plant.script, encoding="utf-8")
    trial = try_fixes(Run(str(path)), fixes(finding(path, plant.old, plant.new)), execute)
    assert trial.failure == ""
    (judged,) = trial.judged
    assert judged.status in ("changes the result", "breaks"), judged.text
    assert judged.is_our_defect
    assert judged.text
    assert trial.left is not None
    assert (trial.texts, trial.exit_code) == ({}, int(trial.left.drifting))
    assert path.read_text(encoding="utf-8") == plant.script
