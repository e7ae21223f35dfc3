"""Which statements are named as storing into a variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulint.runtime.holding.naming import storing_lines

SOURCE = """\
CACHE = {}


class Trainer:
    def __init__(self):
        self.history = []
        self.loss = None

    def step(self, loss):
        self.loss = loss
        self.history.append(loss)


def train(model, batches):
    losses, outs = [], None
    state = None
    for batch in batches:
        state = model(batch, state)
        out = model(batch)
        losses += [out]
        CACHE[batch] = out
        logs["x"].append(out)
        outs = out
    (first, *rest) = losses
    return (total := sum(losses))


def other():
    losses = 5
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(
    ("name", "attribute", "first_line", "lines"),
    [
        ("losses", False, 14, (20, 15)),
        ("losses", False, 28, (29,)),
        ("losses", False, 0, (20, 15, 29)),
        ("state", False, 14, (18, 16)),
        ("outs", False, 14, (23, 15)),
        ("CACHE", False, 0, (21, 1)),
        ("logs", False, 14, (22,)),
        ("history", True, 0, (11, 6)),
        ("loss", True, 0, (7, 10)),
        ("rest", False, 14, (24,)),
        ("total", False, 14, (25,)),
        ("missing", False, 0, ()),
    ],
)
def test_storing_lines(source, name, attribute, first_line, lines):
    assert storing_lines(source, name, attribute, first_line) == lines


def test_a_file_that_cannot_be_read_names_nothing(tmp_path):
    assert storing_lines(str(tmp_path / "none.py"), "x", False) == ()
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    assert storing_lines(str(broken), "x", False) == ()
