"""The mode of a network where it runs: eval or train, and what says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.analysis.domain.values import in_text_order
from gpulint.analysis.evaluate.consumers import Use
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, given_for, outwards
from gpulint.analysis.queries.effects import Place, effects_before, origins_of, place_of, since_made
from gpulint.analysis.queries.networks.runs import is_of_module
from gpulint.analysis.syntax.nodes import argument, called_on, key_of

_SETS: Final = frozenset({"evaluates", "trains"})
_DEEPEST: Final = 3

Mode = Literal["eval", "train", "?"]


@dataclass(frozen=True, slots=True)
class ModuleMode:
    """The mode and the node that sets it, in whichever file. `may_be_later`: by a function that need not have run before, as a `load()`
    that only a test calls."""

    mode: Mode
    by: Any = None
    may_be_later: bool = False


UNKNOWN_MODE: Final = ModuleMode("?")


def module_mode(evaluator: Evaluator, node: Any, frame: Frame) -> ModuleMode:
    """The mode of the network that an expression gives, where the expression is evaluated."""
    return _at(evaluator, place_of(evaluator, node, frame), _DEEPEST)


def _at(evaluator: Evaluator, place: Place, depth: int) -> ModuleMode:
    for one in effects_before(evaluator, place, _SETS):
        return ModuleMode(_mode_of(evaluator, one), one.node)
    elsewhere = _since_made(evaluator, place)
    return elsewhere or (_of_callers(evaluator, place, depth) if depth else UNKNOWN_MODE)


def _mode_of(evaluator: Evaluator, use: Use) -> Mode:
    if use.does == "evaluates":
        return "eval"
    given = argument(use.node, 0, "mode")
    const = evaluator.value_of(given, use.frame).const if given is not None else True
    return "train" if const is True else "eval" if const is False else "?"


def _since_made(evaluator: Evaluator, place: Place) -> ModuleMode | None:
    """What other functions do to it, where they all do the same."""
    origins = in_text_order(origins_of(evaluator, place.value))
    uses = [use for one in origins for use in since_made(evaluator, one, _SETS, place)]
    uses = [one for one in uses if one.frame.function is not place.frame.function]
    modes = {_mode_of(evaluator, one) for one in uses}
    if len(modes) != 1:
        return None
    makers = {where.function for _, where in origins if where is not None}
    return ModuleMode(modes.pop(), uses[0].node, all(one.frame.function not in makers for one in uses))


def _of_callers(evaluator: Evaluator, place: Place, depth: int) -> ModuleMode:
    """The mode in which callers give it, where all give it in the same."""
    name, dot, rest = place.key.partition(".")
    frame, function = place.frame, place.frame.function
    if name not in frame.flow.definitions or frame.flow.definitions[name][0].kind != "parameter":
        if not is_of_module(evaluator, function):
            return UNKNOWN_MODE
        name, dot, rest = function.self_name, "", ""  # a network runs its parts in its own mode
    found = []
    for call, caller in outwards(evaluator, frame):
        is_own = function.takes_self and name == function.self_name
        given = called_on(call) if is_own else given_for(function, name, call)
        key = key_of(given) if given is not None else None
        if key is None:
            return UNKNOWN_MODE
        value = place.value if dot else evaluator.value_of(given, caller)
        found.append(_at(evaluator, Place(f"{key}{dot}{rest}", value, call, caller), depth - 1))
    return found[0] if found and len({one.mode for one in found}) == 1 else UNKNOWN_MODE
