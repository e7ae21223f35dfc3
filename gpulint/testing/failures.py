"""Lets go of what the traceback of a failed test holds: its frames keep every local, the model among them, and pytest keeps the
traceback until the next test's call, through all reruns of this one.

Cleared when the next phase of the test begins: by then the report is made and written, and a debugger has been in it.
Imports no torch.
"""

from __future__ import annotations

import sys

import pytest

from gpulint.memory.errors import empty_frames

_FAILED: pytest.StashKey[list[BaseException]] = pytest.StashKey()


def remember(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """A phase of a test has ended: by its exception, if by one."""
    if call.excinfo is not None:
        item.stash.setdefault(_FAILED, []).append(call.excinfo.value)


def let_go(item: pytest.Item) -> None:
    """Clear the frames of all exceptions that phases of this test ended by; the exceptions and their tracebacks stay."""
    for error in item.stash.get(_FAILED, []):
        empty_frames(error)
    item.stash[_FAILED] = []
    last = getattr(sys, "last_value", None)
    if isinstance(last, BaseException):
        empty_frames(last)
