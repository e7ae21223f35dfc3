"""Phases that a program's text shows: found, gone on to, and said where they were not reached."""

import textwrap
import types
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpulint.forecasting.cards import card_for
from gpulint.forecasting.child.watching import decided
from gpulint.forecasting.forecasting import forecast_once as forecast
from gpulint.forecasting.phases import Outline, outline
from gpulint.forecasting.recorder import Program
from gpulint.forecasting.result import Forecast

pytestmark = pytest.mark.usefixtures("warm_scripts")

H200 = card_for("h200")
MIB = 1 << 20
NETWORK = """
import torch
from torch import nn

net = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(x):
    loss = net(x.cuda()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

@torch.no_grad()
def evaluate():
    return net(torch.randn(65536, 64, device="cuda"))
"""


def read(folder: Path, text: str, **others: str) -> Outline:
    for name, other in others.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(other))
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return outline([str(path), *(str(folder / f"{name}.py") for name in others)])


def run(folder: Path, text: str, **given: object) -> Forecast:
    path = folder / "train.py"
    path.write_text(NETWORK + textwrap.dedent(text))
    return forecast(Program(str(path), **given), H200)  # type: ignore[arg-type]


def ways(found: Outline, name: str = "train.py") -> dict[int, set[int]]:
    """Line → lines of the phases that it leads to, of a file's module level."""
    modules = [one for one in found.scopes if one.file.endswith(name) and not one.first]
    return {
        way.line: {found.phases[number].line for number in way.phases} for one in modules for way in one.ways
    }


def test_phases_are_found_through_functions_methods_and_modules(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        import torch
        import other
        from other import Judge

        def helper():
            other.score()

        helper()
        Judge().judge()
        with torch.inference_mode():
            print("here")
        unused = [len]
        """,
        other="""
        import torch

        @torch.no_grad()
        def score():
            '''Documented.'''
            return 1

        class Judge:
            def judge(self, net):
                net.eval()

        def never(net):
            net.generate()
        """,
    )
    assert ways(found) == {9: {7}, 10: {11}, 12: {12}}
    assert {(one.line, one.what) for one in found.phases} == {
        (12, "part without gradients"),
        (7, "part without gradients"),
        (11, "evaluation"),
        (14, "generation"),
    }


def test_only_conditions_that_stay_the_same_are_guards(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        for step in range(9):
            if args.test and not args.quick:
                net.eval()
            elif step == 3:
                net.generate()
            if args.every:
                args.every = 3
                loss.backward()
        try:
            pass
        except RuntimeError:
            net.eval()
        """,
    )
    (scope,) = found.scopes
    assert [(way.line, way.guards) for way in scope.ways] == [
        (4, ("args.test", "not args.quick")),
        (6, ("not (args.test and (not args.quick))",)),
        (9, ()),
    ]
    assert scope.loops == ((2, 9),)


class Surprising:
    """Whose attributes would say that they were asked."""

    def __getattr__(self, name: str) -> bool:
        raise AssertionError("code of the program's ran")


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("args.test", False),
        ("args.train and not args.test", True),
        ("args.mode == 'test'", False),
        ("args.missing", None),
        ("args.missing and args.test", False),
        ("nowhere or args.train", True),
        ("surprising.test", None),
        ("args.tensor", None),
        ("args.mode > 3", None),
    ],
)
def test_a_guard_is_decided_without_running_anything(guard: str, expected: bool | None) -> None:
    args = types.SimpleNamespace(test=False, train=True, mode="train", tensor=[1])
    frame = types.SimpleNamespace(f_locals={"args": args, "surprising": Surprising()}, f_globals={})
    assert decided(guard, frame) is expected  # type: ignore[arg-type]


def test_an_evaluation_that_comes_late_is_gone_on_to(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        """
        for step in range(100000):
            if step % 40 == 39:
                evaluate()
            train(torch.randn(8, 64))
        """,
        steps=5,
    )
    assert told.fits == "yes"
    assert told.peak_at.line == 16
    assert told.allocated.value > 16 * MIB
    assert 39 <= told.trained <= 41


def test_what_this_run_will_not_do_is_not_waited_for(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        """
        TEST = False
        for step in range(10**9):
            train(torch.randn(8, 64))
            if TEST and step > 10:
                evaluate()
        """,
        steps=6,
    )
    assert told.fits == "yes"
    assert told.trained == 6


def test_an_epoch_goes_on_to_what_its_own_loop_shows(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        """
        loader = torch.utils.data.DataLoader(torch.randn(4000, 64), batch_size=8)
        for epoch in range(2):
            for number, batch in enumerate(loader):
                train(batch)
                if number == 60:
                    evaluate()
        """,
        steps=5,
    )
    assert told.fits == "yes"
    assert told.peak_at.line == 16
