"""Errors let go of what their frames hold, also where somebody has read the frames' variables before."""

from __future__ import annotations

import sys
import traceback
import weakref
from typing import Any

import pytest

from gpulint.memory import errors


class Big:
    pass


def failing(seen: list[Any]) -> None:
    big = Big()
    seen.append(weakref.ref(big))
    raise ValueError("no")


def caught(seen: list[Any], cause: bool = False) -> BaseException:
    try:
        failing(seen)
    except ValueError as error:
        if not cause:
            return error
        try:
            raise KeyError("later") from error
        except KeyError as later:
            return later
    raise AssertionError


@pytest.mark.parametrize("cause", [False, True])
def test_frames_whose_variables_were_read(cause: bool) -> None:
    seen: list[Any] = []
    error = caught(seen, cause)
    for one in errors.chain_of(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            assert "seen" in frame.f_locals  # as IPython does; up to Python 3.12 it leaves a dict behind
    del frame
    assert seen[0]() is not None
    errors.empty_frames(error)
    assert seen[0]() is None
    assert "ValueError: no" in "".join(traceback.format_exception(error))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no exception groups")
def test_members_of_a_group() -> None:
    seen: list[Any] = []
    group = ExceptionGroup("several", [caught(seen), caught(seen)])  # noqa: F821
    errors.empty_frames(group)
    assert [ref() for ref in seen] == [None, None]
