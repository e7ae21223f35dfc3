"""Imports that fixes leave unused go with them, unless somebody else counts on them."""

from pathlib import Path

import pytest
from support import gpulint

from gpulint.fix.imports import names_left_unused, without_imports

TRAIN = """
# copies
from copy import deepcopy
import torch


def fit(model: torch.nn.Module, epochs, train, score):
    model = model.cuda()
    best_score, best = 0.0, None
    for epoch in range(epochs):
        train(model)
        if score(model) > best_score:
            best = deepcopy(model.state_dict())
    model.load_state_dict(best)
"""


@pytest.mark.parametrize(
    ("before", "after", "tidied"),
    [
        ("import gc\nimport os\nos.f()\ngc.collect()\n", "import gc\nimport os\nos.f()\n", "import os\nos.f()\n"),
        ("import gc, os\nos.f(gc)\n", "import gc, os\nos.f()\n", "import os\nos.f()\n"),
        (
            "from a import (\n    b,\n    c,\n)\nb(c)\n",
            "from a import (\n    b,\n    c,\n)\nc()\n",
            "from a import (\n    c,\n)\nc()\n",
        ),
        ("import a.b as d\nd()\nx()\n", "import a.b as d\nx()\n", "x()\n"),
        ("import torch.cuda\nimport gc\ngc.f()\n", "import torch.cuda\nimport gc\n", "import torch.cuda\n"),
        ("# one\nimport gc\n\n\n# two\ngc.f()\nx = 1\n", "# one\nimport gc\n\n\n# two\nx = 1\n", "# one\n\n\n# two\nx = 1\n"),
        # what may be meant stays
        ("import gc\n", "import gc\n", None),  # it was unused before
        ("import gc  # noqa: F401\ngc.f()\n", "import gc  # noqa: F401\n", None),
        ("import gc; x = 1\ngc.f()\n", "import gc; x = 1\n", None),
        ("import gc\n__all__ = ['gc']\ngc.f()\n", "import gc\n__all__ = ['gc']\n", None),
        ("try:\n    import gc\nexcept ImportError:\n    gc = None\ngc.f()\n", "try:\n    import gc\nexcept ImportError:\n    gc = None\n", None),
        ("from a import *\nb()\n", "from a import *\n", None),
    ],
)  # fmt: skip
def test_what_nothing_reads_any_more_is_taken_out(before: str, after: str, tidied: str | None) -> None:
    assert without_imports(after, names_left_unused(before, after)) == (after if tidied is None else tidied)


@pytest.mark.parametrize(
    ("other", "stays"),
    [
        ("from fitting import fit\n", False),
        ("from fitting import *\n", True),
        ("from .fitting import (\n    fit,\n    deepcopy,\n)\n", True),
        ("import fitting\nfitting.deepcopy(1)\n", True),
    ],
)
def test_what_another_file_takes_from_here_stays(tmp_path: Path, other: str, stays: bool) -> None:
    (tmp_path / "fitting.py").write_text(TRAIN)
    (tmp_path / "other.py").write_text(other)
    gpulint(
        "check", "--fix", "--unsafe-fixes", "--confidence", "low", "--no-cache", "fitting.py", cwd=tmp_path
    )
    done = (tmp_path / "fitting.py").read_text()
    assert "value.detach().cpu().clone()" in done
    assert ("from copy import deepcopy" in done) == stays
    assert "# copies" in done
