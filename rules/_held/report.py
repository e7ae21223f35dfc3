"""What GPU101, GPU104 and GPU107 say of what is kept with its graph: the message, the reason, what it costs, and how it is mended."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gpulint.rules._forwards import in_eval_mode
from gpulint.rules._held.against import against, is_read_after, is_under_no_grad_fix
from gpulint.rules._held.averages import CHAIN, WEIGHTS
from gpulint.rules._held.cuts import Cut, cuts, is_summand, starts
from gpulint.rules._held.mended import by_methods
from gpulint.rules._held.readers import takes_numbers

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.networks.runs import is_of_module
from gpulint.analysis.queries.stores.graph_state import GraphState, backwards
from gpulint.analysis.queries.stores.shown import Shown, shown
from gpulint.analysis.queries.stores.stores import Owner, Store, bounded, graph_in, stores
from gpulint.analysis.syntax.nodes import COMPREHENSIONS, key_of, last_name
from gpulint.answers import Answer, Question, Verdict, doubts_of
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Repair, Report

_LIVE = Cost(
    "every activation behind it, for each iteration",
    "925 MiB a step for a 4-layer language model; H200, torch 2.11",
)
_FREED = Cost(
    "at most 512 B, and its graph's nodes in host memory, for each iteration; no activations",
    "at most 512 B a step on the GPU, and 131 KiB of host memory, for a 4-layer language model; H200, torch 2.11",
)
_FREED_TENSOR = Cost(
    "its own bytes, and its graph's nodes in host memory, for each iteration; no activations",
    "131 KiB a step of host memory besides its own bytes, for a 4-layer language model; H200, torch 2.11",
)
_FREED_SUM = Cost(
    "its graph's nodes in host memory, for each iteration",
    "131 KiB a step for a 4-layer language model; H200, torch 2.11",
)
_EITHER = Cost(
    "its own bytes each call where a backward follows, every activation behind it where none does",
    "512 B a call where a backward follows; H200, torch 2.11",
)
_RETAINED = Cost(
    "the tensors that its graph still saves, for each iteration",
    "925 MiB a step for a 4-layer language model; H200, torch 2.11",
)
_UNDER_GRAD = "grad is on where it is made, and nothing detaches it"


@dataclass(frozen=True, slots=True)
class Held:
    """What a claim is about: what `code` tells at `at`, the store and the place that it goes into in the end, the values with a graph
    that are kept, what has become of that graph, and the claim's answers. `owner` and `state` are None where nothing asked for them."""

    code: str
    at: Any
    store: Store
    owner: Owner | None
    values: tuple[Value, ...]
    state: GraphState | None
    answers: tuple[Answer, ...]

    @property
    def becomes(self) -> str:
        """What has become of the graph by the next round; empty where that is up to others."""
        if self.state is None:
            return ""
        return self.state.state if self.state.state in ("freed", "retained") else "live"

    @property
    def holder(self) -> str:
        """What keeps it, as the code spells it where it is told: without indices that are others each time."""
        node: Any = self.store.container
        is_called = self.store.frame.caller is not None and self.owner is not None
        if is_called or isinstance(node, COMPREHENSIONS):
            return self._place
        while key_of(node) is None and (base := _base(node)) is not None:
            node = base
        spelled = ast.unparse(node)
        return spelled if " " not in spelled else f"the dict that `{self.store.frame.function.name}` makes"

    @property
    def _place(self) -> str:
        """The name of the place, with the attributes that lead from there to where it is put."""
        if self.owner is None:
            return "the list"
        key, names = self.owner.key, [name for _, name in reversed(self.owner.attributes) if name]
        return ".".join([key, *(names[1:] if names and key.endswith(f".{names[0]}") else names)])

    @property
    def is_added(self) -> bool:
        """Whether it becomes part of a running total, and is not written into a slot or joined to others."""
        at, value = self.store.at, self.store.value
        sums = not isinstance(at, ast.Assign) or isinstance(value, (ast.BinOp, ast.IfExp))
        return self.store.way in ("added", "averaged") and sums


def _base(node: Any) -> Any:
    """What something is taken of: by an index, as an attribute, or by a method, as in `d.setdefault(k, [])`."""
    func = node.func if isinstance(node, ast.Call) else node
    return func.value if isinstance(func, (ast.Subscript, ast.Attribute)) else None


def report(asked: Asked, told: Held, style: str = "auto") -> Report:
    """What is reported of what is kept."""
    found = cuts(asked, told.store, told.at)
    message, reason, cost, severity = _words(asked, told, asked.source(_named(told, found)), found)
    return Report(
        told.at,
        message,
        reason,
        cost,
        Severity.WARNING if severity is Severity.ERROR and doubts_of(told.answers) else severity,
        lambda: _repair(asked, told, found, style),
        _related(asked, told),
        subject=_subject(told),
        follows=frozenset(node for value in told.values for node, _ in value.origins),
    )


def _named(told: Held, found: tuple[Cut, ...]) -> Any:
    """What is kept, as it stands where it is told."""
    if not found:
        return told.store.value
    flow, node = found[0].frame.flow, found[0].node
    is_here = told.at is flow.statement_of(node) or flow.statement_of(told.at) is flow.statement_of(node)
    return node if is_here or told.store.frame.caller is not None else told.store.value


def _subject(told: Held) -> str:
    return told.store.frame.function.name if told.store.way == "returned" else told.holder


def _related(asked: Asked, told: Held) -> tuple[RelatedNode, ...]:
    """The lines that keep it, where a function that is called does."""
    if told.store.frame.caller is None:
        return ()
    call, root = list(told.store.frame.chain())[-1]
    several = [told.store]
    for other in stores(asked.evaluator, root.function):
        chain = list(other.frame.chain())
        if chain and chain[-1][0] is call and other.at is not told.store.at:
            value = asked.evaluator.value_of(other.value, other.frame)
            stays = other.way != "slot" and bounded(asked.evaluator, other) is None
            several += [other] if stays and graph_in(asked.evaluator, value) else []
    return tuple(_kept_at(asked, one) for one in several)


def _kept_at(asked: Asked, store: Store) -> RelatedNode:
    message = f"`{store.frame.function.qualname}` keeps it here"
    if asked.is_here(store.frame):
        return RelatedNode(message, store.at)
    return RelatedNode(message, None, store.frame.function.file.path, store.at.lineno)


# -- in words


def _words(asked: Asked, told: Held, what: str, found: tuple[Cut, ...]) -> tuple[str, str, Cost, Severity]:
    """The message, the reason, the cost, and how much it matters at worst."""
    where = told.holder if " " in told.holder else f"`{told.holder}`"
    if told.code == "GPU107":
        reason = "grad is enabled here, and nothing detaches the average or what goes into it"
        message = f"{where} takes in `{what}` with its graph at every update: its own graph grows without end"
        of_weights = any(asked.evaluator.value_of(one.node, one.frame).kind == "parameter" for one in found)
        return message, reason, WEIGHTS if of_weights else CHAIN, Severity.WARNING
    if told.becomes:
        return _of_kept(asked, told, what, found)
    severity = Severity.INFO if len(doubts_of(told.answers)) > 1 else Severity.WARNING
    if told.store.way == "returned":
        return (*_of_returned(told, what), severity)
    verb = "adds up" if told.is_added else "keeps"
    return f"{where} {verb} `{what}` together with its autograd graph", _UNDER_GRAD, _EITHER, severity


def _of_returned(told: Held, what: str) -> tuple[str, str, Cost]:
    message = f"`{_subject(told)}` returns `{what}` with its autograd graph"
    if not any(one.question is Question.GRAPH and one.verdict is Verdict.PROVEN for one in told.answers):
        return f"{message}, and the framework keeps it", _UNDER_GRAD, _EITHER
    reason = "backward has gone through it: the graph's nodes stay as long as the value is held"
    return f"{message}, after the backward through it", reason, _FREED


def _of_kept(asked: Asked, told: Held, what: str, found: tuple[Cut, ...]) -> tuple[str, str, Cost, Severity]:
    """The same of what is kept round after round."""
    state = told.becomes
    verb = "adds up" if told.is_added else "keeps"
    begin = f"`{told.holder}` {verb} `{what}` across iterations, together with"
    if state == "retained":
        reason = "graph kept after backward: retain_graph or create_graph leaves the saved tensors in it"
        return f"{begin} its autograd graph with saved tensors", reason, _RETAINED, Severity.ERROR
    if state == "freed":
        reason = "graph freed: backward has released what it saved; its nodes, in host memory, stay as long as the value is held"
        kept = [shown(asked.evaluator, one.node, one.frame) for one in found]
        scalar = all(one.size == "scalar" for one in told.values) or {*kept} == {Shown.SCALAR}
        cost = _FREED if scalar else _FREED_SUM if told.is_added else _FREED_TENSOR
        # it holds, and nothing shows that what stays matters
        return f"{begin} what backward has left of its autograd graph", reason, cost, Severity.INFO
    function = told.store.frame.function
    if function.name == "forward" and is_of_module(asked.evaluator, function):
        reason = (
            "nothing in this file ever empties it; whether the graph's buffers are freed is up to the caller"
        )
        return f"{begin} its autograd graph, call after call", reason, _EITHER, Severity.WARNING
    evaluates = in_eval_mode(asked, calls_of(told.values))
    mode = "in an evaluation with grad enabled" if evaluates else "with grad enabled"
    reason = f"graph live: made {mode}, and no backward goes through it before the next iteration"
    if told.owner and told.state and grows_for_certain(asked, told.owner, told.state):
        return f"{begin} its autograd graph, which no backward frees", reason, _LIVE, Severity.ERROR
    return f"{begin} its autograd graph, which no backward in sight frees", reason, _LIVE, Severity.WARNING


def grows_for_certain(asked: Asked, owner: Owner, state: GraphState) -> bool:
    """Whether a live graph stays for each batch, and nobody out of sight can go through it or take it away."""
    loops = [(one.loop, one.frame.function) for one in owner.rounds]
    batches = any(_counts_all(loop) or asked.steps.is_over_data(loop, inside) for loop, inside in loops)
    return not state.unseen and (batches or (not owner.rounds and owner.kind != "local"))


def _counts_all(loop: Any) -> bool:
    """Whether a loop counts all that there is: `for i in range(len(dataset))`."""
    counted = getattr(loop, "iter", None)
    given = counted.args if isinstance(counted, ast.Call) else ()
    return any(isinstance(one, ast.Call) and last_name(one.func) == "len" for one in given)


def calls_of(held: tuple[Value, ...]) -> set[tuple[Any, Frame]]:
    """The calls, with their frames, that made the graphs of values."""
    return {one for value in held for one in value.calls}


# -- how it is mended


def _repair(asked: Asked, told: Held, found: tuple[Cut, ...], style: str) -> Repair | None:
    whole = len(found) == 1 and found[0].node is told.store.value
    if not found or (told.store.elements and whole):
        return None  # what is in a list that somebody else has made
    of_weights = all(asked.evaluator.value_of(one.node, one.frame).kind == "parameter" for one in found)
    if told.code == "GPU107" or (told.store.way == "averaged" and of_weights):
        return _of_average(asked, told, found)
    if any(backwards(asked.evaluator, one.node, one.frame) for one in found):
        return None  # a backward goes through it
    what = [shown(asked.evaluator, one.node, one.frame) for one in found]
    sums = all(is_summand(one, told.store) for one in found)
    if not all(what) and (any(what) or not sums):
        return None  # it may be a tuple or a dict, or a number beside a tensor
    if not told.becomes:
        return _replaced(asked, found, ("detach",), "what reads it may want its graph")
    if told.becomes == "live" and is_under_no_grad_fix(asked, calls_of(told.values), told.answers):
        return None  # GPU201 offers no_grad for the whole evaluation, which leaves nothing to detach
    is_scalar = all(one is Shown.SCALAR for one in what)
    methods: tuple[str, ...] = ("detach",)
    if is_scalar and style == "auto" and takes_numbers(asked, told.store, told.owner):
        methods = ("item",)
    why = against(asked, found, told.store, told.owner, told.becomes, told.holder)
    return _replaced(asked, found, methods, why)


def _replaced(asked: Asked, found: tuple[Cut, ...], methods: tuple[str, ...], why: str) -> Repair:
    call = "".join(f".{one}()" for one in methods)
    what = f"hold the value without its graph: `{call}`"
    return by_methods(asked, (one.node for one in found), methods, what, why)


def _of_average(asked: Asked, told: Held, found: tuple[Cut, ...]) -> Repair | None:
    """On what is averaged in, and on what the average starts from."""
    if any(asked.evaluator.value_of(one.node, one.frame).kind in ("list", "tuple", "dict") for one in found):
        return None
    found = (*found, *starts(asked, told.store))
    unshown = next((one for one in found if not shown(asked.evaluator, one.node, one.frame)), None)
    why = f"`{asked.source(unshown.node)}` may be no tensor" if unshown is not None else ""
    why = why or is_read_after(asked, told.store)
    return by_methods(asked, (one.node for one in found), ("detach",), "detach what is averaged in", why)
