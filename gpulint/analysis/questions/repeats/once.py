"""Code that runs once: for each object that a constructor makes, or for the whole script."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.answers import Answer, Question, left_open

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


def runs_once(function: ir.Function, in_loop: bool) -> tuple[Answer, ...]:
    """What leaves it open whether a line of a function runs more than once; `in_loop`: a loop of the function's runs it."""
    if in_loop:
        return ()
    if function.name == "<module>":
        return (left_open(Question.REPEATS, "the script runs it once"),)
    if function.cls is None or function.name not in _CONSTRUCTORS:
        return ()
    clause = f"the constructor runs it once, and how many `{function.cls.name}` are made is not shown"
    return (left_open(Question.REPEATS, clause, function),)
