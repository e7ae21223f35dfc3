"""The schema survives the process boundary, and refuses what is not it."""

from __future__ import annotations

import json

import pytest

from gpulint.runtime.record.options import Lines, Options, join_lines
from gpulint.runtime.record.result import (
    Drift,
    End,
    Environment,
    Held,
    Holder,
    LineFigures,
    RankResult,
    RunResult,
    Sample,
    Site,
)

SITE = Site("/train.py", 3, "train")


def leak(rate: float, place="device", status="leak") -> Drift:
    return Drift(SITE, "train", place, status, rate, 1.0, 18, int(18 * rate), 18, rate, "why")


def rank(number: int, *drifts: Drift) -> RankResult:
    environment = Environment("3.11", "/python", "Linux", "2026-01-01T00:00:00+00:00", torch="2.13")
    holder = Holder("list", "x", "list", "local", "f()", "/t.py", 4, 2, 1024, births=(Held(SITE, 2, 1024),))
    return RankResult(
        number,
        2,
        environment,
        End("stopped", "stopped", where=SITE),
        samples=(Sample(1, "train", False, 0.5, 0.5), Sample(2, "train", True, 1.0, 0.5, allocated=512)),
        drifts=drifts,
        holders=(holder,),
        lines=(LineFigures("/t.py", 4, None, tensors={"x": 512}),),
    )


def test_a_round_trip_through_json_text():
    run = RunResult(("python", "train.py"), End("stopped", "ok"), 2.5, (rank(0, leak(512)), rank(1)))
    assert RunResult.from_json(json.loads(json.dumps(run.to_json()))) == run


@pytest.mark.parametrize(
    ("change", "error"),
    [({"reason": "vanished"}, ValueError), ({"message": 3}, TypeError), ({"where": [1]}, TypeError)],
)
def test_other_forms_are_refused(change, error):
    with pytest.raises(error):
        End.from_json({"reason": "raised", "message": "x", **change})


def test_missing_fields_take_their_default_and_unknown_ones_are_ignored():
    assert Options.from_json({"steps": 5, "colour": "blue"}) == Options(steps=5)


def test_lines_are_joined_by_file():
    assert join_lines([("b", 2), ("a", 3), ("b", 1), ("b", 2)]) == (
        Lines("a", (3,), (0,)),
        Lines("b", (1, 2), (0, 0)),
    )
