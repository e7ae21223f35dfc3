"""What the verifier leaves out to be cheap, and that it misses nothing by it."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from sampling import Watch  # noqa: E402

from gpulint.runtime.holding import holders, walking  # noqa: E402
from gpulint.runtime.observing.calls import Calls  # noqa: E402
from gpulint.runtime.probes.base import Block  # noqa: E402
from gpulint.runtime.probes.frames import Frames  # noqa: E402

HERE = str(Path(__file__).parent)


def test_a_leak_that_begins_after_the_second_look_is_named():
    kept = []
    with Watch(steps=30, home=HERE, device="cpu") as watch:
        for step in range(35):
            tensor = torch.zeros(1000) + step
            if step >= 16:  # the second look is after the thirteenth step
                kept.append(tensor)
            watch.step()
    result = watch.result
    (leak,) = result.leaks()
    assert leak.bytes_per_step == 4096
    assert result.holders[0].text.startswith("list `kept`")


def test_nodes_that_pile_up_late_are_found_though_nothing_else_does():
    weight = torch.zeros(8, requires_grad=True)
    total: Any = 0.0
    with Watch(steps=20, home=HERE, device="cpu") as watch:
        for step in range(25):
            loss = (weight * step).sum()
            loss.backward()
            if step >= 15:
                total = total + loss
            watch.step()
    result = watch.result
    assert result.leaks() == ()
    assert [holder.variable for holder in result.holders if holder.nodes] == ["total"]


def test_a_look_that_others_follow_names_what_leaks_and_nothing_else(monkeypatch):
    asked: list[int] = []
    find = holders.find
    monkeypatch.setattr(
        holders, "find", lambda targets, *rest: asked.append(len(targets)) or find(targets, *rest)
    )
    kept, now_and_then = [], []
    with Watch(steps=20, home=HERE, device="cpu") as watch:
        for step in range(14):  # three of warm-up, and a look after ten
            kept.append(torch.zeros(1000))
            if step == 7:
                now_and_then.append(torch.zeros(3000))
            watch.step()
        assert asked[-1] == 8  # of ten steps the last two are not judged, and what is rare is not looked for
    result = watch.result
    assert {holder.variable for holder in result.holders} == {
        "kept",
        "now_and_then",
    }  # the last look names it too


def test_a_search_for_what_nothing_holds_leaves_no_garbage():
    """A frame of its own in a cycle would keep what the frames below it have: the input of a step, which would count as alive."""
    gc.collect()
    gc.disable()
    try:
        target = {0: Block(0, "device", 0, 8)}
        holders.find(target, lambda tensor: None, range(0), Frames(HERE), leaking={0})
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_modules_of_a_package_that_is_not_the_users_are_not_looked_into(monkeypatch):
    def module(name: str, file: str | None) -> ModuleType:
        made = ModuleType(name)
        if file is not None:
            made.__file__ = file
        monkeypatch.setitem(sys.modules, name, made)
        return made

    frames = Frames(HERE)
    module("theirs", f"{sys.prefix}/lib/site-packages/theirs/__init__.py")
    module("theirs.part", f"{HERE}/part.py")
    mine = [module("mine", f"{HERE}/mine/__init__.py"), module("mine.part", f"{HERE}/mine/part.py")]
    mine += [module("space", None), module("space.part", f"{HERE}/space/part.py")]
    found = [
        one
        for one in walking.user_modules(frames)
        if one.__name__.split(".")[0] in ("theirs", "mine", "space")
    ]
    assert found == [mine[0], mine[1], mine[3]]


def test_calls_are_counted_while_nothing_is_sampled_and_timed_while_steps_are():
    calls = Calls(Frames(HERE), lambda: None)
    calls.watch_torch(torch)
    tensor = torch.zeros(1)
    try:
        for sampling in (False, True):
            calls.sampling = sampling
            for _ in range(5):
                tensor.item()
            tensor.item()
    finally:
        calls.stop()
    found = {(one.count, one.sampled): one.seconds for one in calls.figures() if one.what == "Tensor.item"}
    assert found.keys() == {(10, 5), (2, 1)}
    assert all(seconds > 0 for seconds in found.values())


def test_forwards_without_gradients_are_all_counted():
    model = torch.nn.Linear(64, 64).eval()
    x = torch.zeros(4, 64)
    with Watch(home=HERE, device="cpu") as watch:
        for turn in range(40):
            with torch.set_grad_enabled(turn % 4 == 0):
                model(x)
            watch.step()
    figures = {forward.grad: forward for forward in watch.result.forwards}
    assert (figures[True].count, figures[False].count) == (10, 30)
    assert figures[False].kept == 0
    assert figures[False].seconds > 0


def test_stacks_are_told_apart_by_their_lines():
    frames = Frames(HERE)

    def here() -> int:
        return frames.stack(sys._getframe())

    same = {here() for _ in range(3)}
    assert len(same) == 1
    assert here() not in same
