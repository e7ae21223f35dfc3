"""What the whole time that a run is watched says of growth, beyond the sampled steps: what comes at random, what has its places."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from starting import start, write

from gpulint.runtime.parent.verdict import verify

pytest.importorskip("torch")

HEAD = """
import random, torch
draw, device = random.Random(3), "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Linear(32, 64).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def learn():
    out = net(torch.randn(16, 32, device=device))
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
    return out.detach()
"""
SCRIPTS = {
    "kept at random": (
        """
        hard = []
        for step in range(100_000):
            out = learn()
            if draw.random() < 0.04:
                hard.append(out)
        """,
        (1, 3),
        "hard",
    ),
    "kept in the first steps of each fold": (
        """
        kept = []
        def fold():
            for step in range(30):
                kept.append(learn())
            for step in range(60):
                learn()
        for number in range(1000):
            fold()
        """,
        (1,),
        "kept",
    ),
    "kept in the first steps of each long round": (
        """
        kept = []
        for number in range(1000):
            for step in range(240):
                out = learn()
                if step < 30:
                    kept.append(out)
        """,
        (1,),
        "kept",
    ),
    "in a list of each of some objects": (
        """
        class Client:
            def __init__(self):
                self.updates = []
        clients = [Client() for _ in range(60)]
        for step in range(100_000):
            draw.choice(clients).updates.append(learn())
        """,
        (1,),
        "clients",
    ),
    "a place for each of many items": (
        """
        class Item:
            made = None
            def get(self):
                if self.made is None:
                    self.made = learn()
                return self.made
        items = [Item() for _ in range(3000)]
        for step in range(100_000):
            learn()
            draw.choice(items).get()
        """,
        (0,),
        "",
    ),
}


NEEDS_ROUNDS = pytest.mark.skipif(sys.version_info < (3, 12), reason="rounds are told by `sys.monitoring`")


@pytest.mark.parametrize(
    ("text", "codes", "holder"),
    [
        pytest.param(*script, id=name, marks=[NEEDS_ROUNDS] if "round" in name else [])
        for name, script in SCRIPTS.items()
    ],
)
def test_what_a_whole_run_says(text: str, codes: tuple[int, ...], holder: str, tmp_path: Path) -> None:
    found = verify("train.py", start(write(tmp_path, HEAD + textwrap.dedent(text)), reach=18.0), ())
    assert found.exit_code in codes, (found.rates, found.unpredicted, found.harmless)
    if holder:
        assert holder in " ".join(one.text for one in (*found.unpredicted, *found.harmless))
