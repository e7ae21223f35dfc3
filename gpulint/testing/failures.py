"""Lets go of what the traceback of a failed test holds: its frames keep every local, the model among them, and pytest keeps the
traceback until the next test's call, through all reruns of this one.

Cleared when the next phase of the test begins: by then the report is made and written, and a debugger has been in it.
Imports no torch.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Final

import pytest

_FAILED: pytest.StashKey[list[BaseException]] = pytest.StashKey()
_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def remember(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """A phase of a test has ended: by its exception, if by one."""
    if call.excinfo is not None:
        item.stash.setdefault(_FAILED, []).append(call.excinfo.value)


def let_go(item: pytest.Item) -> None:
    """Clear the frames of all exceptions that phases of this test ended by; the exceptions and their tracebacks stay."""
    for error in item.stash.get(_FAILED, []):
        clear(error)
    item.stash[_FAILED] = []
    last = getattr(sys, "last_value", None)
    if isinstance(last, BaseException):
        clear(last)


def clear(error: BaseException) -> None:
    """Clear the frames of an exception, of those it was raised from and of those in its group."""
    for one in _all_of(error):
        trace = one.__traceback__
        while trace is not None:
            _clear_frame(trace.tb_frame)
            trace = trace.tb_next


def _clear_frame(frame: FrameType) -> None:
    if _waits(frame):
        return
    try:
        frame.clear()
    except RuntimeError:  # it is running, or waits for its next value
        return
    if sys.version_info < (3, 13):
        frame.f_locals  # noqa: B018 - who looked at the locals has left a copy of them on the frame; asked again, it is emptied


def _waits(frame: FrameType) -> bool:
    """Whether it is that of a generator which waits for its next value: a fixture, say, that handed out an exception it had
    caught. Cleared, it would end there and then, before Python 3.13; since then that is an error."""
    if sys.version_info >= (3, 13) or not frame.f_code.co_flags & _SUSPENDS:
        return False
    return any(
        (isinstance(one, GeneratorType) and one.gi_frame is frame)
        or (isinstance(one, CoroutineType) and one.cr_frame is frame)
        or (isinstance(one, AsyncGeneratorType) and one.ag_frame is frame)
        for one in gc.get_referrers(frame)
    )


def _all_of(error: BaseException) -> Iterator[BaseException]:
    pending, seen = [error], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [other for other in (one.__cause__, one.__context__) if other is not None]
        inner = getattr(one, "exceptions", None)
        if isinstance(inner, tuple):
            pending += [other for other in inner if isinstance(other, BaseException)]
