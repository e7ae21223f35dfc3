"""What is still alive is told by holder, with what graphs pin."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpulint.memory.live import Held, held  # noqa: E402
from gpulint.memory.releasing import Cleared  # noqa: E402


def test_equal_rows_are_one_and_do_not_hide_what_pins_more() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(200, 200) for _ in range(8)))
    optimizer = torch.optim.Adam(model.parameters())
    curve = []
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(64, 200)).mean().backward()
        optimizer.step()
        curve.append(model(torch.randn(1500, 200)).square().mean())  # each pins all of its activations
    found = {one.holder: one for one in held("cpu", 50)}
    names = list(found)
    losses = next(name for name in names if name.startswith("list `curve`"))
    state = next(name for name in names if "state of optimizer `Adam`" in name)
    assert names.index(losses) < names.index(state)
    assert found[losses].bytes + found[losses].pinned > 4 * 8 * 1500 * 200 * 4
    assert found[state].tensors >= 3 * 2 * 8  # two moments and a count for each weight and bias
    assert not names[0].endswith("tensors")
    assert curve[0].grad_fn is not None  # and looking has freed nothing


def test_a_freed_graph_pins_nothing() -> None:
    weight = torch.randn(400, 400, requires_grad=True)
    kept = [(weight @ weight).sum()]
    kept[0].backward()
    (found,) = (one for one in held("cpu", 50) if one.holder.startswith("list `kept`"))
    assert found.pinned == 0
    assert found.bytes < 1000


def test_clear_shows_the_groups() -> None:
    shown = str(Cleared(3, holders=(Held("list `curve` in `train()`, train.py:3", 16, 8192, 64 << 20),)))
    assert "8.00 KiB in 16 tensors, and 64.00 MiB in autograd graphs: held by list `curve`" in shown
