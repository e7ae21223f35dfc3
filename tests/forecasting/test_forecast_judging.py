"""From a list of allocations to figures, intervals and words: no torch needed."""

import json
from io import StringIO
from pathlib import Path

import pytest

from gpulint.forecasting import api, forecasting
from gpulint.forecasting.cards import CARDS, GIB, MIB, UnknownCard, card_for
from gpulint.forecasting.forecasting import Recorded, judged
from gpulint.forecasting.recorder import Program
from gpulint.forecasting.recording import Doubt, Mark, Phase, Recording
from gpulint.forecasting.replaying import Steps, replay
from gpulint.forecasting.result import Said
from gpulint.reports.forecast import document, verdict
from gpulint.reports.page import page
from gpulint.reports.terminal import write

H200 = card_for("h200")
WEIGHTS, INPUT, HIDDEN, GRADIENT = 1, 2, 3, 4


def steps(count: int, hidden: int = 30 * MIB, late: bool = False) -> Recording:
    """Weights of 100 MiB; in each step an input, activations, a gradient. The activations die with their step, or `late`, once
    those of the next are there."""
    events: list[object] = [(WEIGHTS, 100 * MIB, 1, 0, int(Phase.FORWARD))]
    marks, gradients, left = [], [], 0
    for step in range(count):
        number = 10 * (step + 1)
        events += [
            (number + INPUT, 10 * MIB, 2, 0, int(Phase.INPUT)),
            (number + HIDDEN, hidden, 3, 1, int(Phase.FORWARD)),
        ]
        events += [left] if left else []
        events.append((number + GRADIENT, 100 * MIB, 3, 2, int(Phase.BACKWARD)))
        events += [number + GRADIENT, number + INPUT]
        left = number + HIDDEN if late else 0
        events += [] if late else [number + HIDDEN]
        gradients.append(number + GRADIENT)
        marks.append(Mark(len(events), "train"))
    return Recording(
        events=events,
        sites=[
            ("", 0, "", ""),
            ("/p/train.py", 3, "main", ""),
            ("/p/train.py", 5, "main", ""),
            ("/p/train.py", 7, "main", "Net.hidden"),
        ],
        operators=["", "aten.addmm.default", "aten.mm.default"],
        marks=marks,
        kinds={"parameters": [WEIGHTS], "gradients": gradients},
        doubts=[],
        end="finished",
        message="",
        torch="2.11.0",
        python="3.12.1",
        settings="",
        facts={"evaluated": False, "cut_epochs": 0},
    )


def run(recording: Recording, card: str = "h200", others: Recording | None = None) -> Recorded:
    return Recorded(Program("/p/train.py"), card_for(card), recording, others, 1.0)


def test_the_peak_is_told_by_kind_line_and_step() -> None:
    found = judged(run(steps(4)))
    assert found.allocated.value == 240 * MIB
    assert dict(found.kinds) == {
        "parameters": 100 * MIB,
        "gradients": 100 * MIB,
        "activations": 30 * MIB,
        "inputs": 10 * MIB,
    }
    assert [(line, size // MIB) for _, line, size, _ in found.lines] == [(7, 130), (3, 100), (5, 10)]
    assert found.modules == [("Net.hidden", 130 * MIB, 1)]
    assert (found.peak_at.train, found.peak_at.kind, found.peak_at.line, found.peak_at.phase) == (
        0,
        "train",
        7,
        "backward",
    )
    assert found.trained == 4
    assert found.fits == "yes"
    assert found.process.value == found.reserved.value + H200.context
    for figure in (found.allocated, found.reserved, found.process):
        assert figure.low < figure.value < figure.high


def test_the_allocators_settings_are_played() -> None:
    recording = steps(6, 27 * MIB)
    default, expandable = judged(run(recording), ""), judged(run(recording), "expandable_segments:True")
    assert default.reserved.value != expandable.reserved.value
    assert expandable.reserved.value == 240 * MIB  # 237 in whole pages of 20
    recording.settings = "expandable_segments:True"
    assert judged(run(recording)).reserved == expandable.reserved
    with pytest.raises(ValueError, match="not of this form"):
        judged(run(recording), "expandable")


def test_a_program_that_is_too_large_does_not_fit_and_ends_somewhere() -> None:
    recording = steps(4, 2000 * MIB)
    found = judged(run(recording, "2GiB"))
    assert found.fits == "no"
    assert (found.out_of_memory.line, found.out_of_memory.train) == (7, 0)
    assert judged(run(recording, "a100-80")).fits == "yes"


def test_between_the_ends_of_the_interval_it_is_open() -> None:
    recording = steps(4, 900 * MIB)
    exact = (judged(run(recording)).process.value + MIB) / GIB
    assert judged(run(recording, f"{exact:.3f}GiB")).fits == "open"


def test_other_answers_widen_the_intervals_or_take_the_doubt_away() -> None:
    recording = steps(4)
    recording.doubts = [Doubt("mask", "/p/train.py", 7)]
    fewer = judged(run(recording, others=steps(4, 3 * MIB)))
    assert fewer.allocated.low < 213 * MIB
    assert [(doubt.code, doubt.line) for doubt in fewer.doubts] == [("mask", 7)]
    more = judged(run(recording, others=steps(4, 90 * MIB)))
    assert more.allocated.high >= 300 * MIB
    assert not judged(run(recording, others=steps(4))).doubts


def test_an_unknown_card_another_torch_and_compilation_widen_the_intervals() -> None:
    def width(card: str = "h200", torch: str = "2.11.0", said: tuple[Said, ...] = ()) -> int:
        played = replay(steps(4))
        figures = forecasting.figures(played, None, card_for(card), torch, list(said))
        assert all(figure.low < figure.value < figure.high for figure in figures)
        return figures[2].high - figures[2].low

    assert width() < width(torch="2.8.0")
    assert width() < width("rtx4090")
    assert width() < width(said=(Said("compile", ""),))
    assert width("24GiB") >= width("rtx4090")


def test_steps_that_grow_or_differ_are_told() -> None:
    growing = Steps((10, 20, 30, 40, 50), (1 * MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB))
    assert growing.growth == MIB
    assert Steps((10,) * 5, (1, 2, 3, 3, 4)).growth == 0
    assert Steps((10, 10, 8, 10), (0,) * 4).spread == pytest.approx(0.2)
    codes = {one.code for one in forecasting.doubts_of(steps(2), growing)}
    assert {"grows", "varies"} <= codes


def test_where_a_phase_was_not_reached_it_is_not_known_whether_it_fits() -> None:
    recording = steps(4)
    recording.end = "time"
    recording.facts["unreached"] = [["/p/train.py", 16, "part without gradients"]]
    found = judged(run(recording))
    assert found.fits == "unknown"
    (doubt,) = [one for one in found.doubts if one.code == "unreached"]
    assert (doubt.line, doubt.text.startswith("this part without gradients was not reached")) == (16, True)
    assert verdict(found).startswith("Not known whether it fits: ")
    assert "train.py:16 was not reached" in verdict(found)


def test_what_a_step_took_is_read_off_the_marks() -> None:
    assert replay(steps(3)).steps == Steps((240 * MIB,) * 3, (100 * MIB,) * 3)


def test_del_lets_go_of_what_the_last_step_left() -> None:
    late = steps(5, late=True)
    before, after = replay(late), replay(api.without_leftovers(late))
    assert before.allocated == 240 * MIB
    assert before.steps.ends[0] == 130 * MIB
    assert replay(late).reserved >= after.reserved
    assert len(api.without_leftovers(late).events) == len(late.events)
    assert after.steps.peaks == ()  # it has no steps of its own any more


@pytest.mark.parametrize("name", CARDS)
def test_every_card_is_found_by_its_name(name: str) -> None:
    card = card_for(name.upper())
    assert card.name == name
    assert card.memory > 10 * GIB
    assert card.measured == (name == "h200")


def test_a_size_is_a_card_and_nonsense_is_none() -> None:
    assert card_for("24GiB").memory == 24 * GIB
    assert not card_for("24GiB").known
    for text in ("banana", "24", "12MiB", ""):
        with pytest.raises(UnknownCard, match="a size like 24GiB"):
            card_for(text)


def test_a_measured_card_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    measured = {
        **card_for("l4").to_json(),
        "name": "mine",
        "context": 5 * MIB,
        "measured": True,
        "torch": "2.11.0",
    }
    path.write_text(json.dumps(measured))
    card = card_for(str(path))
    assert (card.name, card.context, card.capability, card.measured) == ("mine", 5 * MIB, (8, 9), True)
    path.write_text("{}")
    with pytest.raises(UnknownCard, match="is not what gpulint forecast --calibrate writes"):
        card_for(str(path))
    with pytest.raises(UnknownCard, match="cannot be read"):
        card_for(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("given", "option", "wanted"),
    [
        (("--batch", "4", "-v"), "--batch", ("--batch", "16", "-v")),
        (("--batch=4",), "--batch", ("--batch=16",)),
        (("-v",), "--batch", ("-v", "--batch", "16")),
        (("batch=4",), "batch=", ("batch=16",)),
        ((), "batch=", ("batch=16",)),
    ],
)
def test_the_batch_size_is_put_where_the_script_takes_it(
    given: tuple[str, ...], option: str, wanted: tuple[str, ...]
) -> None:
    assert api.with_batch(Program("t.py", given), option, 16).arguments == wanted


def test_text_and_page_tell_the_same() -> None:
    recording = steps(4, 3000 * MIB)
    recording.doubts = [Doubt("compile", "/p/<b>.py", 7)]
    found = judged(run(recording, "2GiB"))
    out = StringIO()
    write(document(found), out)
    drawn = page(document(found))
    for said in ("does not fit", "3.13 GiB", "torch.compile", "activations", "in step 1 in the backward"):
        assert said in out.getvalue()
        assert said in drawn
    assert "<b>" not in drawn
    assert found.to_json()["kinds"]["parameters"] == 100 * MIB
