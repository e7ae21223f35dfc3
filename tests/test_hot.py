"""How calls in every step are named that a helper makes, and what is said of those in every so many."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulint.api import check_paths

TIDY = "import torch\n\n\ndef tidy():\n    torch.cuda.empty_cache()\n"
STEPS = """
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        tidy()
"""


def test_a_helper_of_another_file_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "tidying.py").write_text(TIDY)
    (tmp_path / "train.py").write_text(f"import torch\nfrom tidying import tidy\n{STEPS}")
    (finding,) = check_paths(tmp_path)
    assert check_paths(tmp_path, {"select": ["GPU501"]}) == [finding]
    assert finding.message.startswith(
        "`torch.cuda.empty_cache()`, which `tidy()` runs in tidying.py, in every"
    )
    (place,) = finding.related
    assert (Path(place.filename).name, place.position.row) == ("tidying.py", 5)
    assert finding.fix is None


@pytest.mark.parametrize(
    ("more", "fixed"),
    [
        ("", True),
        ("    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n", True),
        ("    registry.clear()\n", False),
        ("    global seen\n    seen = 0\n", False),
    ],
    ids=["alone", "cleans", "calls", "sets"],
)
def test_a_helper_that_does_more_is_not_taken_out(tmp_path: Path, more: str, fixed: bool) -> None:
    (tmp_path / "train.py").write_text(f"{TIDY}{more}\n{STEPS}")
    (finding,) = check_paths(tmp_path, {"select": ["GPU501"]})
    assert (finding.fix is not None) is fixed
