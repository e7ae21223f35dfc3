"""The schema survives the process boundary, and refuses what is not it."""

from __future__ import annotations

import pytest

from gpulint.runtime.record.options import Lines, Options, join_lines
from gpulint.runtime.record.result import End


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
