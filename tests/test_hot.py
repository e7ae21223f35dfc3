"""How calls in every step are named that a helper makes."""

from __future__ import annotations

from pathlib import Path

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
    assert finding.message.startswith(
        "`torch.cuda.empty_cache()`, which `tidy()` runs in tidying.py, in every"
    )
    (place,) = finding.related
    assert (Path(place.filename).name, place.position.row) == ("tidying.py", 5)
    assert finding.fix is None


def test_a_helper_of_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TIDY + STEPS)
    (finding,) = check_paths(tmp_path)
    assert finding.message.startswith("`torch.cuda.empty_cache()`, which `tidy()` runs, in every step")
    assert [place.position.row for place in finding.related] == [5]


def test_a_call_in_place_is_named_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n" + STEPS.replace("tidy()", "torch.cuda.empty_cache()"))
    (finding,) = check_paths(tmp_path)
    assert finding.message.startswith("`torch.cuda.empty_cache()` in every step")
    assert finding.related == ()
