"""What GPU101 and GPU104 share: when a hold is a mistake, how it is told and how it is mended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.outlives.periods import few_graphs, few_nodes
from gpulint.analysis.values.values import (
    LARGE,
    LOSS,
    MAYBE,
    MIXED,
    NAMED,
    OUTPUT,
    SCALAR,
    SLOTS,
    UNSURE_GRAD,
    VIEW,
    Grad,
    Kind,
)
from gpulint.answers import (
    Answer,
    Considered,
    Question,
    Verdict,
    as_far,
    confidence_of,
    doubts_of,
    left_open,
    proven,
    refuted,
    until_refuted,
)
from gpulint.findings import Confidence, Severity
from gpulint.rule import Cost, RelatedNode, Repair, Replace, Report

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Forward, Hold

_LIVE_COST = Cost(
    "every activation behind it, for each iteration",
    "925 MiB a step for a 4-layer language model; H200, torch 2.11",
)
_FREED_COST = Cost(
    "at most 512 B, and its graph's nodes in host memory, for each iteration; no activations",
    "at most 512 B a step on the GPU, and 131 KiB of host memory, for a 4-layer language model; H200, torch 2.11",
)
_FREED_TENSOR_COST = Cost(
    "its own bytes, and its graph's nodes in host memory, for each iteration; no activations",
    "131 KiB a step of host memory besides its own bytes, for a 4-layer language model; H200, torch 2.11",
)
_FREED_SUM_COST = Cost(
    "its graph's nodes in host memory, for each iteration",
    "131 KiB a step for a 4-layer language model; H200, torch 2.11",
)
_KEPT_COST = Cost(
    "its own bytes each call where a backward follows, every activation behind it where none does",
    "512 B a call where a backward follows; H200, torch 2.11",
)
_RETAINED_COST = Cost(
    "the tensors that its graph still saves, for each iteration",
    "925 MiB a step for a 4-layer language model; H200, torch 2.11",
)


def is_certain(hold: Hold, facts: FileFacts) -> bool:
    """Whether the claim is told without a doubt."""
    return confidence_of(answers(hold, facts)) is Confidence.HIGH


def considered(hold: Hold, facts: FileFacts) -> Considered:
    """The claim that the value is kept beyond its iteration together with a graph, as `explain` shows it."""
    return Considered(hold.at, hold.place.holder, tuple(as_far(answers(hold, facts))))


def answers(hold: Hold, facts: FileFacts) -> Iterator[Answer]:
    """On what that claim stands, the cheap questions first."""
    holds = True
    for answer in _against(hold):  # one at a time: whoever only asks whether it holds stops at the first
        yield answer
        holds &= answer.verdict is not Verdict.REFUTED
    if not holds:
        return
    state = _state(hold)
    if state == "live":
        yield from _maybe_without_graph(hold, facts)
        yield from _few_graphs(hold, facts)
    elif (few := _few_nodes(hold, facts)) is not None:
        yield few
    elif state == "freed":
        yield from _few_layers(hold, facts)
    yield proven(Question.GRAPH, _reason(hold, state))
    if hold.place.of_framework:
        yield left_open(
            Question.OUTLIVES, f"`{hold.place.holder}` is the framework's, which may keep a few at most"
        )
        return
    yield proven(
        Question.OUTLIVES, f"`{hold.place.holder}` outlives the iteration, and nothing bounds it", hold.stmt
    )


def _few_nodes(hold: Hold, facts: FileFacts) -> Answer | None:
    rounds = hold.rounds
    return few_nodes(facts.analysis, hold.stmt, hold.place.holder, rounds.loops, rounds.birth_loop)


def _behind(hold: Hold, facts: FileFacts) -> list[Forward]:
    """The forwards of its own function that its value is made of."""
    return [
        forward
        for function in facts.functions
        if function.function is hold.function
        for forward in function.forwards
        if forward.site in hold.value.sites
    ]


def _few_graphs(hold: Hold, facts: FileFacts) -> Iterator[Answer]:
    """What leaves it open whether live graphs come to much: there are two or three of them."""
    if hold.place.holder_kind == "variable" and not hold.graph.returned:
        few = few_graphs(facts.analysis, hold.rounds.loops)
        yield from () if few is None else (few,)


def _is_of_small_parts(hold: Hold, facts: FileFacts) -> bool:
    """Whether all behind its value is of networks of which most is frozen."""
    from gpulint.analysis.questions.size.forwards import are_mostly_frozen

    behind = _behind(hold, facts)
    return {forward.site for forward in behind} == set(hold.value.sites) and are_mostly_frozen(behind)


def _few_layers(hold: Hold, facts: FileFacts) -> Iterator[Answer]:
    """Whether what is kept is a loss that a backward always goes through, of networks with so few layers that the nodes of
    its graph come to little."""
    from gpulint.analysis.questions.backward.cutting import may_be_left_to_others
    from gpulint.analysis.questions.size.forwards import ForwardSizes

    behind = _behind(hold, facts)
    if not (hold.value.has(LOSS) and hold.graph.wholly_freed) or may_be_left_to_others(facts.followed, hold):
        return  # what was made beside the loss, or in a round without a backward, keeps what it saved
    if all(
        forward.loops[-1:] == hold.rounds.loops[-1:] for forward in behind
    ):  # none runs again within a round
        yield from facts.ask(ForwardSizes).of_nodes(behind)


def _maybe_without_graph(hold: Hold, facts: FileFacts) -> Iterator[Answer]:
    """Whether what made the value may run without grad after all, or on the CPU: then no graph is kept on the GPU."""
    from gpulint.analysis.questions.backward.read_by_callers import wanted_by_callers
    from gpulint.analysis.questions.grad.doubts import Doubts
    from gpulint.analysis.questions.grad.own_guards import handed_over

    if (wanted := wanted_by_callers(facts.analysis, hold)) is not None:
        yield wanted
    doubts = facts.ask(Doubts)
    for function in facts.functions:
        for forward in function.forwards if function.function is hold.function else ():
            if forward.site not in hold.value.sites:
                continue
            if doubts.about_graph(function, forward):
                path = forward.module.path or "the model"
                yield refuted(
                    Question.GRAPH, f"`{path}` may run without grad there, or on the CPU", forward.call
                )
            elif (handed := handed_over(facts.analysis, forward)) is not None:
                yield handed


def _state(hold: Hold) -> str:
    """What becomes of the graph of what is held, where the claim holds."""
    if hold.graph.state in ("freed", "retained"):
        return hold.graph.state
    if hold.graph.evaluating and hold.graph.inference and not hold.in_few_slots and not hold.place.in_module:
        return "live"
    return "kept" if _is_kept_by_module(hold) else "live"


def _is_kept_by_module(hold: Hold) -> bool:
    stays = (
        hold.place.never_reset and hold.place.container and not hold.graph.returned and not hold.graph.escaped
    )
    return hold.place.in_module and stays


def _against(hold: Hold) -> Iterator[Answer]:
    """What refutes the claim, whatever the graph's state."""
    holder = f"`{hold.place.holder}`"
    if hold.value.kind is not Kind.GRAPH:
        yield refuted(Question.GRAPH, "it is not shown to have a graph")
        return
    yield from _against_graph(hold)
    if hold.graph.consumed or hold.graph.feeds_backward:
        yield refuted(Question.BACKWARD, f"a later backward goes through {holder}")
    if hold.rounds.bounded:
        yield refuted(Question.OUTLIVES, f"{holder} is emptied, overwritten or bounded")
    if hold.place.read_back:
        yield refuted(Question.BACKWARD, f"{holder} is read back at once, by the forward that fills it")
    if hold.on_host:
        yield refuted(Question.DEVICE, "what is held is computed on the CPU")
    if hold.in_few_rounds:
        yield refuted(Question.REPEATS, "the loop runs as often as the text says")
    if hold.graph.fed_back or (hold.rounds.birth_loop is not None and hold.rounds.birth_loop.steps):
        yield refuted(
            Question.BACKWARD,
            f"{holder} is state that goes into the next forward, or is made anew in each step",
        )
    if hold.place.in_module and hold.place.holder_kind == "variable":
        yield refuted(Question.OUTLIVES, f"{holder} is a part of the module's own result")
    if hold.graph.to_differentiate and (hold.graph.returned or hold.graph.escaped):
        yield refuted(
            Question.BACKWARD, "a term with derivatives in it, for the caller to differentiate again"
        )
    yield from _against_freed(hold) if hold.graph.state in ("freed", "retained") else _against_live(hold)


def _against_graph(hold: Hold) -> Iterator[Answer]:
    value = hold.value
    if not value.has(SLOTS) and (value.has(MAYBE) or value.has(MIXED)):
        # An array of which some slots were set to graphs has theirs, whichever they are.
        if value.has(LOSS) and value.has(OUTPUT):
            yield left_open(Question.TENSOR, "which results of the criterion are numbers is not seen")
        elif _is_one_of_trained_outputs(hold):
            yield left_open(Question.GRAPH, "which of the network's outputs it is made of is not seen")
        else:
            yield refuted(Question.GRAPH, "not all that it may be has a graph")
    if not any(site.what in ("forward", "loss") for site in value.sites):
        yield refuted(Question.GRAPH, "no network and no loss is seen to make its graph")
    if hold.place.how == "add" and hold.graph.grad is Grad.DISABLED:
        yield refuted(Question.GRAD, "grad is off where it is added")


def _is_one_of_trained_outputs(hold: Hold) -> bool:
    """Whether it is made of one of several outputs of a network whose graph a backward goes through, and handed to what keeps it."""
    value = hold.value
    unsure = value.has(NAMED) or value.has(MIXED) or value.has(VIEW) or not value.has(OUTPUT)
    return not unsure and hold.graph.state == "freed" and hold.place.keep is not None


def _against_freed(hold: Hold) -> Iterator[Answer]:
    each_step = hold.rounds.per_step and hold.place.holder_kind != "variable"
    if (
        hold.rounds.loops
        and not each_step
        and not any(loop.steps or loop.over_data for loop in hold.rounds.loops)
    ):
        yield refuted(Question.REPEATS, "no loop around it is one of steps or batches")
    if hold.rounds.within_step:
        yield refuted(Question.OUTLIVES, "a local sum within one step")


def _against_live(hold: Hold) -> Iterator[Answer]:
    if hold.graph.state != "live" or hold.value.has(UNSURE_GRAD):
        yield refuted(
            Question.GRAPH, "whether its graph lives, or whether grad is on where it is made, is not shown"
        )
        return
    if not hold.rounds.made_inside:
        yield refuted(Question.GRAPH, "the graph is made outside of the loops that it is held across")
    in_evaluation = (
        hold.graph.evaluating and hold.graph.inference and not hold.in_few_slots and not hold.place.in_module
    )
    local = hold.place.holder_kind == "variable" and not (
        hold.graph.returned or hold.graph.escaped or hold.place.method_of_module
    )
    of_batches = local and hold.graph.inference and (hold.rounds.over_data or hold.rounds.over_items)
    if not (in_evaluation or _is_kept_by_module(hold) or of_batches):
        yield refuted(
            Question.BACKWARD, "a backward may go through it: in a caller, or in what it is handed to"
        )


def reports(facts: FileFacts, holds: Iterable[Hold], style: str) -> Iterator[Report]:
    """What is told about holds: of several places in which one call keeps a value, the one that grows, and the others with it."""
    by_call: dict[int, list[tuple[Hold, Report]]] = {}
    for hold in holds:
        found = report(facts, hold, style)
        if found is not None:
            by_call.setdefault(id(hold.at.origin), []).append((hold, found))
    for together in by_call.values():
        kept = [one for one in together if one[0].place.keep is not None]
        others = [one for one in together if one[0].place.keep is None]
        yield from (found for _, found in others)
        if kept:
            first = min(kept, key=lambda one: (len(one[1].doubts), not _adds_up(one[0])))
            related = tuple(node for one in kept if one is not first for node in one[1].related)
            yield replace(first[1], related=(*first[1].related, *related))


def _adds_up(hold: Hold) -> bool:
    return hold.place.how == "add" or (hold.place.keep is not None and hold.place.keep.how == "add")


def report(facts: FileFacts, hold: Hold, style: str) -> Report | None:
    """What is told about a hold; None where the claim does not stand."""
    found = until_refuted(answers(hold, facts))
    if confidence_of(found) is None:
        return None
    state = _state(hold)
    named = hold.leaves[0] if hold.leaves else hold.given
    what = facts.source(named) if named is not None else "a value"
    where = f"`{hold.place.holder}`"
    verb = "adds up" if _adds_up(hold) else "keeps"
    related: tuple[RelatedNode, ...] = ()
    if hold.place.keep is not None:
        at = None if hold.kept_elsewhere else hold.place.keep.stmt
        message = f"`{hold.place.keep.function.qualname}` keeps it here"
        if hold.place.keep.filename != "<library>":
            related = (RelatedNode(message, at, hold.place.keep.filename, hold.place.keep.row),)
    told: dict[str, tuple[str, Cost, Severity]] = {
        "live": ("its autograd graph, which no backward frees", _LIVE_COST, Severity.ERROR),
        "freed": (
            "what backward has left of its autograd graph",
            _freed_cost(hold, verb == "adds up"),
            Severity.WARNING,
        ),
        "kept": ("its autograd graph, call after call", _KEPT_COST, Severity.WARNING),
        "retained": ("its autograd graph with saved tensors", _RETAINED_COST, Severity.ERROR),
    }
    graph, cost, severity = told[state]
    if state == "live" and not _grows_for_certain(hold):
        graph, severity = "its autograd graph, which no backward in sight frees", Severity.WARNING
    if state == "freed" and hold.value.has(SCALAR):
        severity = Severity.INFO  # a few bytes and nodes: it holds, and nothing shows that it matters
    doubts = doubts_of(found)
    if severity is Severity.ERROR and (doubts or (state == "live" and _is_of_small_parts(hold, facts))):
        severity = Severity.WARNING  # an error is one for certain, and large
    message = f"{where} {verb} `{what}` across iterations, together with {graph}"
    unless = hold.graph.only_called_elsewhere if state == "live" else ()
    return Report(
        hold.at,
        message,
        _reason(hold, state),
        cost,
        severity,
        lambda: _repair(facts, hold, state, style),
        related,
        unless,
        doubts=doubts,
        subject=hold.place.holder,
    )


def _grows_for_certain(hold: Hold) -> bool:
    """Whether a live graph stays for each batch, and nobody out of sight can go through it or take it away."""
    batches = (
        hold.rounds.over_data or hold.rounds.over_items or any(loop.counts_all for loop in hold.rounds.loops)
    )
    called_for_each = not hold.rounds.loops and hold.rounds.per_step
    return (batches or called_for_each) and not hold.graph.returned and not hold.graph.escaped


def _freed_cost(hold: Hold, summed: bool) -> Cost:
    """A scalar is measured; of anything else only the author knows the size."""
    if hold.value.has(SCALAR):
        return _FREED_COST
    return _FREED_SUM_COST if summed else _FREED_TENSOR_COST


def _reason(hold: Hold, state: str) -> str:
    if state == "live":
        mode = "in an evaluation with grad enabled" if hold.graph.evaluating else "with grad enabled"
        return f"graph live: made {mode}, and no backward goes through it before the next iteration"
    if state == "kept":
        return (
            "nothing in this file ever empties it; whether the graph's buffers are freed is up to the caller"
        )
    if state == "retained":
        return "graph kept after backward: retain_graph or create_graph leaves the saved tensors in it"
    return "graph freed: backward has released what it saved; its nodes, in host memory, stay as long as the value is held"


def _repair(facts: FileFacts, hold: Hold, state: str, style: str) -> Repair | None:
    from gpulint.analysis.questions.backward.cutting import against_cutting, goes_on_in_callee
    from gpulint.analysis.questions.device.waiting import are_tensors
    from gpulint.fix.nodes import method_chain

    if goes_on_in_callee(hold):
        return None
    if not hold.leaves or _is_of_several(hold) or (state == "live" and hold.graph.under_no_grad_fix):
        return None  # GPU201 offers no_grad for the whole evaluation, which leaves nothing to detach
    if not are_tensors(facts.analysis, hold):
        return None
    scalar = hold.value.has(SCALAR)
    if scalar and hold.place.number_uses and style == "auto":
        methods: tuple[str, ...] = ("item",)
    elif hold.value.has(LARGE) and not scalar and _goes_to_host(facts, hold):
        methods = ("detach", "cpu")
    else:
        methods = ("detach",)
    changes = tuple(Replace(leaf.node, method_chain(leaf.node, methods)) for leaf in hold.leaves)
    call = "".join(f".{method}()" for method in methods)
    why = against_cutting(facts.analysis, hold)
    if not why and "cpu" in methods:
        why = f"what reads `{hold.place.holder}` finds a tensor on the CPU"
    return Repair.unless(why, f"hold the value without its graph: `{call}`", changes)


def _goes_to_host(facts: FileFacts, hold: Hold) -> bool:
    """Whether what piles up should go to the host, and can."""
    from gpulint.analysis.questions.device.waiting import is_on_host, may_wait_on_host

    if not hold.place.container or hold.place.is_slot or all(map(is_on_host, hold.leaves)):
        return False
    return may_wait_on_host(facts.analysis, hold)


def _is_of_several(hold: Hold) -> bool:
    """Whether what is held is a list or a tuple, as far as the code tells: what a list is extended by, `out[1:]` of what a
    module gives."""
    if hold.are_tensors:
        return False
    return hold.place.how == "extend" or any(
        isinstance(leaf, ir.Sub) and isinstance(leaf.index, ir.Slice) for leaf in hold.leaves
    )
