"""What has become of the graph of a value by the next round of a loop: whether a backward went through it, and left its buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame, settled
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.graphs.backwards import is_true
from gpulint.analysis.queries.outcome import outcome, steps
from gpulint.analysis.queries.stores.stores import Owner, Round, Store, graph_in, kept_by, leaves
from gpulint.analysis.syntax.nodes import key_of, keyword

State = Literal["live", "freed", "retained", "consumed", "together", "fed", "none"]


@dataclass(frozen=True, slots=True)
class GraphState:
    """`live`: no backward goes through it; `freed` and `retained`: one does, in the round that stores it; `together`: one does once the
    rounds are over; `none`: it becomes an array as it is, which nothing with a graph or on a GPU does; `consumed`: one goes through what holds it, `fed`: that goes into the next forward. `unseen` are uses of the value by
    what is not seen, which may go backward; `beside` those of what else was made by the same forwards, which lives as long; `by` is what
    decides."""

    state: State
    by: Use | None = None
    unseen: tuple[Use, ...] = ()
    beside: tuple[Use, ...] = ()


def graph_state(
    evaluator: Evaluator, store: Store, owner: Owner, origins: Iterable[tuple[Any, Frame]]
) -> GraphState:
    """The state of the graph of what is stored, as long as it is held."""
    stored = [((leaf, store.frame), evaluator.value_of(leaf, store.frame)) for leaf in leaves(store)]
    places = [at for leaf, value in stored for at in [*kept_by(evaluator, value)] or [leaf]]
    values = [(at, graph_in(evaluator, evaluator.value_of(*at))) for at in places]
    certain = min((len(one.assumptions) for _, several in values for one in several), default=0)
    held, surest = list[Use](), list[Use]()  # of all, and of those of which least is taken for so
    for at, several in values:
        uses = consumers(evaluator, *at, "graph") if several else []
        held += uses
        surest += uses if any(len(one.assumptions) == certain for one in several) else []
    all_through = [one for one in held if _goes_backward(evaluator, one)]
    newest = [one for one in all_through if _is_of_newest(one, owner, store) or _is_before(one, owner, store)]
    through = [one for one in all_through if one not in newest]
    later = {id(one.node) for one in through}
    fed = [one for one in held if one.role == "fed" and not _is_only_read(evaluator, one, owner, store)]
    made = [one for one in origins if one[1] is not None]
    behind = [use for node, frame in made for use in consumers(evaluator, node, frame, "graph")]
    freed = (use for node, frame in made for use in backwards(evaluator, node, frame))
    direct = [one for one in freed if id(one.node) not in later]
    seen = {store.frame.function, *(frame.function for _, frame in made)}
    on_host = [one for one in (*behind, *held) if _becomes_array(one) and one.frame.function in seen]
    if on_host:
        return GraphState("none", on_host[0])
    inside = [one for one in (*newest, *direct) if _within_rounds(one, owner, store)]
    if through:
        return GraphState("consumed", through[0])
    read = [one for one in held if one.role == "reads" and one.frame.function in seen]
    arrays = [one for one in read if one.name.partition(".")[0] == "numpy"]
    # what a backward goes through has a graph, whatever fails later
    if arrays and not inside and not direct:
        return GraphState("none", arrays[0])
    if fed:
        return GraphState("fed", fed[0])
    if inside:
        kept = all(_is_kept(one.node) for one in inside)
        return GraphState("retained" if kept else "freed", inside[0])
    if direct:
        return GraphState("together", direct[0])
    unseen = tuple(one for one in surest if _is_handed_away(evaluator, one, store))
    beside = [one for one in behind if one.role == "returned"] if owner.kind == "local" else ()
    return GraphState("live", None, unseen, tuple(beside))


def _is_only_read(evaluator: Evaluator, use: Use, owner: Owner, store: Store) -> bool:
    """Whether a network, or a loss, is given it once the rounds are over, and what it gives for it is only read."""
    within = any(runs_within(use.node, use.frame, one) for one in owner.rounds)
    if within or use.name or (owner.kind != "local" and use.frame.function is store.frame.function):
        return False  # a method by a name of its own may go backward itself
    return (what := outcome(evaluator, use.node, use.frame)).is_read_only and bool(what.read)


def _is_handed_away(evaluator: Evaluator, use: Use, store: Store) -> bool:
    """Whether a use hands something to code that is not seen: back to who calls, into what other files read, or to a call for good."""
    if use.role == "given":
        dropped = isinstance(use.frame.flow.parents.get(use.node), ast.Expr)
        return dropped and isinstance(use.node, ast.Call) and use.node is not store.at
    if use.role == "stored":
        return _is_read_elsewhere(evaluator, use.owner)
    return use.role in ("returned", "too much")


def _is_read_elsewhere(evaluator: Evaluator, owner: Any) -> bool:
    """Whether other files read the attribute of an object that something is put into."""
    cls, name = owner if isinstance(owner, tuple) and isinstance(owner[0], Class) else (None, "")
    files = evaluator.program.searched(name, cls.file) if cls is not None else ()
    others = (one for file in files if file is not cls.file for one in file.naming(name))
    return any(key.endswith(f".{name}") for one in others for key in one.flow.uses)


def _is_of_newest(use: Use, owner: Owner, store: Store) -> bool:
    """Whether it is the one put last that a round goes backward through: `losses[-1].backward()`."""
    if store.way != "put" or use.frame is not store.frame:
        return False
    key = key_of(store.container)
    places = map(use.frame.flow.place, ast.walk(use.node))
    last = any(key_of(one) == f"{key}[-1]" for one in places)
    return last and any(runs_within(use.node, use.frame, one) for one in owner.rounds)


def _is_before(use: Use, owner: Owner, store: Store) -> bool:
    """Whether a backward goes through a value before the same round stores it: through what it has freed none goes again."""
    order, at = use.frame.flow.order, use.frame.flow.statement_of
    earlier = use.frame is store.frame and order.get(at(use.node), 0) < order.get(at(store.at), 0)
    within = any(runs_within(use.node, use.frame, one) for one in owner.rounds)
    return earlier and within and not _is_kept(use.node)


def backwards(evaluator: Evaluator, node: Any, frame: Frame) -> list[Use]:
    """The backwards that go through what an expression gives."""
    uses = consumers(evaluator, node, frame, "graph")  # found once as well
    found = lambda: [one for one in uses if _goes_backward(evaluator, one)]  # noqa: E731
    return settled(evaluator, frame, (backwards, node), found)  # type: ignore[no-any-return]


def made_backward(evaluator: Evaluator, store: Store) -> list[Use]:
    """The backwards through what made a value: through the forwards behind it, or through what its name was given."""
    made = evaluator.value_of(store.value, store.frame).origins
    made |= {(store.frame.flow.unaliased(store.value), store.frame)}
    given = [one for one in made if one[1] is not None and not isinstance(one[0], ast.arg)]
    return [use for node, frame in given for use in backwards(evaluator, node, frame)]


def _goes_backward(evaluator: Evaluator, use: Use) -> bool:
    """Whether a use goes backward: also what is given to something unseen together with an optimizer."""
    if use.role == "backward":
        # what is differentiated to be differentiated again goes on: its graph is not freed
        return not (use.name.endswith("autograd.grad") and _is_kept(use.node))
    return use.role == "given" and steps(evaluator, use)


def _becomes_array(use: Use) -> bool:
    """Whether what is cut becomes an array without a copy to the host: it is there already."""
    above = use.frame.flow.parents.get(use.node) if use.role == "cuts" else None
    if not isinstance(above, ast.Attribute) or above.attr != "numpy":
        return False
    before = [one for one in ast.walk(use.node) if isinstance(one, ast.Attribute)]
    return not any(one.attr == "cpu" for one in before)


def _is_kept(node: Any) -> bool:
    names = ("retain_graph", "create_graph") if isinstance(node, ast.Call) else ()
    return any(is_true(keyword(node, one)) for one in names)


def runs_within(node: Any, frame: Frame, rounds: Round) -> bool:
    """Whether a node is evaluated in the rounds of a loop, itself or by a call there."""
    ways = frame.leading_to(node)
    return any(where is rounds.frame and rounds.loop in where.flow.loops(one) for one, where in ways)


def _within_rounds(use: Use, owner: Owner, store: Store) -> bool:
    """Whether a use happens in a round that stores, and not after all of them."""
    # each call of a function that fills what is not its own is a round
    return owner.kind != "local" or any(runs_within(use.node, use.frame, one) for one in owner.rounds)
