"""What empties the attribute of an object, or a name of a module, that something is stored in: elsewhere than where it is stored."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function, methods_naming
from gpulint.analysis.queries.multiplicity import Multiplicity
from gpulint.analysis.queries.stores.stores import Owner, emptying


@dataclass(frozen=True, slots=True)
class Emptied:
    """A statement that empties it: in each step, once a phase, or at a time that is not in sight."""

    when: Literal["step", "phase", "?"]
    by: Any


def emptied(evaluator: Evaluator, multiplicity: Multiplicity, owner: Owner) -> Emptied | None:
    """What empties an owner most often; None where nothing does."""
    found: Emptied | None = None
    for by, frame in _statements(evaluator, owner):
        rates = {one.rate for one in multiplicity.of(by, frame)}
        if "step" in rates:
            return Emptied("step", by)
        if rates & {"phase", "every nth"}:
            found = Emptied("phase", by)
        elif "?" in rates and found is None:
            found = Emptied("?", by)
    return found


def _emptied_by(frame: Frame, key: str) -> Iterator[tuple[Any, Frame]]:
    return ((one, frame) for one in emptying(key, key, frame))


def _statements(evaluator: Evaluator, owner: Owner) -> Iterator[tuple[Any, Frame]]:
    program = evaluator.program
    for cls, name in owner.attributes:
        for method, key in methods_naming((*program.lineage(cls), *program.subclasses(cls)), name):
            if not begins_object(evaluator, method):
                yield from _emptied_by(evaluator.root(method), key)
        yield from from_outside(evaluator, cls, name)
    for function in owner.frame.function.file.functions if owner.kind == "outer" else ():
        if owner.key in function.words:
            yield from _emptied_by(evaluator.root(function), owner.key)


def begins_object(evaluator: Evaluator, method: Function) -> bool:
    """Whether a method only runs as an object is made: the constructor, or what nothing but a constructor calls."""
    if method.name == "__init__":
        return True
    callers = {site.frame.function.name for site in evaluator.callers(method)}
    return callers == {"__init__"}


def from_outside(evaluator: Evaluator, cls: Class, name: str) -> Iterator[tuple[Any, Frame]]:
    """The statements outside of a class that empty such an attribute of what may be its object, or set it anew."""
    for function, key in evaluator.names.named_by_others(cls, name):
        frame, flow = evaluator.root(function), function.flow
        named = (*flow.uses.get(key, ()), *(one.node for one in flow.definitions.get(key, ())))
        of = evaluator.value_of(named[0].value, frame).ref if isinstance(named[0], ast.Attribute) else None
        if not isinstance(of, Class) or cls in evaluator.program.lineage(of):
            yield from _emptied_by(frame, key)
