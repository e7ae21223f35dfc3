"""What GPU101 and GPU104 share: when a hold is a mistake, how it is told and how it is mended."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.analysis.file.facts import Hold
from gpulint.analysis.values.values import LARGE, MAYBE, MIXED, SCALAR, SLOTS, UNSURE_GRAD, Grad, Kind
from gpulint.findings import Severity
from gpulint.rule import RelatedNode, Repair, Replace, Report

_LIVE_COST = "every activation behind it, for each iteration (925 MiB a step for a 4-layer language model; H200, torch 2.11)"
_FREED_COST = (
    "at most 512 B a step on the GPU, and 131 KiB of host memory (4-layer language model; H200, torch 2.11)"
)
_FREED_TENSOR_COST = (
    "its own bytes a step on the GPU, and 131 KiB of host memory (4-layer language model; H200, torch 2.11)"
)
_FREED_SUM_COST = "131 KiB of host memory a step (4-layer language model; H200, torch 2.11)"
_KEPT_COST = (
    "512 B a call where backward follows, every activation behind it where none does (H200, torch 2.11)"
)
_RETAINED_COST = "the tensors its graph still saves, each iteration (925 MiB a step for a 4-layer language model; H200, torch 2.11)"


def claim(hold: Hold, facts: FileFacts) -> str | None:
    """Which claim the facts bear: "live", "freed", "kept", "retained", or none."""
    state = _claim(hold)
    return None if state == "live" and _is_doubtful(hold, facts) else state


def _is_doubtful(hold: Hold, facts: FileFacts) -> bool:
    """Whether what made the value may run without grad after all, or on the CPU: then no graph is kept on the GPU."""
    from gpulint.analysis.questions.grad.doubts import Doubts

    doubts = facts.ask(Doubts)
    return any(
        doubts.about_graph(function, forward)
        for function in facts.functions
        if function.function is hold.function
        for forward in function.forwards
        if forward.site in hold.value.sites
    )


def _claim(hold: Hold) -> str | None:
    value = hold.value
    if value.kind is not Kind.GRAPH or hold.consumed or hold.bounded:
        return None
    if hold.feeds_backward or hold.read_back:
        return None
    if not value.has(SLOTS) and (value.has(MAYBE) or value.has(MIXED)):
        return None  # an array of which some slots were set to graphs has theirs, whichever they are
    if not any(site.what in ("forward", "loss") for site in value.sites):
        return None
    if hold.how == "add" and hold.grad is Grad.DISABLED:
        return None
    if hold.on_host or hold.in_few_rounds:
        return None
    if hold.fed_back or (hold.birth_loop is not None and hold.birth_loop.steps):
        return None
    if hold.in_module and hold.holder_kind == "variable":
        return None  # a part of the module's own result
    if hold.to_differentiate and (hold.returned or hold.escaped):
        return None  # a term with derivatives in it, for the caller to differentiate again
    if hold.state in ("freed", "retained"):
        each_step = hold.per_step and hold.holder_kind != "variable"
        steps = not hold.loops or each_step or any(loop.steps or loop.over_data for loop in hold.loops)
        return hold.state if steps and not hold.within_step else None
    if hold.state != "live" or value.has(UNSURE_GRAD):
        return None
    if not hold.made_inside:
        return None
    if hold.evaluating and hold.inference and not hold.in_few_slots and not hold.in_module:
        return "live"
    if hold.in_module and hold.never_reset and hold.container and not hold.returned and not hold.escaped:
        return "kept"
    local = (
        hold.holder_kind == "variable"
        and not hold.returned
        and not hold.escaped
        and not hold.method_of_module
    )
    return "live" if local and hold.inference and (hold.over_data or hold.over_items) else None


def report(facts: FileFacts, hold: Hold, state: str, style: str) -> Report:
    named = hold.leaves[0] if hold.leaves else hold.given
    what = facts.source(named) if named is not None else "a value"
    where = f"`{hold.holder}`"
    verb = "adds up" if hold.how == "add" or (hold.keep is not None and hold.keep.how == "add") else "keeps"
    related: tuple[RelatedNode, ...] = ()
    if hold.keep is not None:
        node = None if hold.kept_elsewhere else hold.keep.stmt.node
        message = f"`{hold.keep.function.qualname}` keeps it here"
        if hold.keep.filename != "<library>":
            related = (RelatedNode(message, node, hold.keep.filename, hold.keep.row),)
    graph, cost, severity = {
        "live": ("its autograd graph, which no backward frees", _LIVE_COST, Severity.ERROR),
        "freed": ("its autograd graph", _freed_cost(hold, verb == "adds up"), Severity.WARNING),
        "kept": ("its autograd graph, call after call", _KEPT_COST, Severity.WARNING),
        "retained": ("its autograd graph with saved tensors", _RETAINED_COST, Severity.ERROR),
    }[state]
    if state == "live" and not _grows_for_certain(hold):
        graph, severity = "its autograd graph, which no backward in sight frees", Severity.WARNING
    message = f"{where} {verb} `{what}` across iterations together with {graph}"
    unless = hold.only_called_elsewhere if state == "live" else ()
    return Report(
        hold.node,
        message,
        _reason(hold, state),
        cost,
        severity,
        lambda: _repair(facts, hold, state, style),
        related,
        unless,
    )


def _grows_for_certain(hold: Hold) -> bool:
    """Whether a live graph stays for each batch, and nobody out of sight can go through it or take it away."""
    batches = hold.over_data or hold.over_items or any(loop.counts_all for loop in hold.loops)
    called_for_each = not hold.loops and hold.per_step
    return (batches or called_for_each) and not hold.returned and not hold.escaped


def _freed_cost(hold: Hold, summed: bool) -> str:
    """A scalar is measured; of anything else only the author knows the size."""
    if hold.value.has(SCALAR):
        return _FREED_COST
    return _FREED_SUM_COST if summed else _FREED_TENSOR_COST


def _reason(hold: Hold, state: str) -> str:
    if state == "live":
        mode = "in an evaluation with grad enabled" if hold.evaluating else "with grad enabled"
        return f"graph live: made {mode}, and no backward goes through it before the next iteration"
    if state == "kept":
        return (
            "nothing in this file ever empties it; whether the graph's buffers are freed is up to the caller"
        )
    if state == "retained":
        return "graph kept after backward: retain_graph or create_graph leaves the saved tensors in it"
    return "graph freed: backward released the saved tensors, the graph's nodes stay as long as the value is held"


def _is_on_host(leaf: ir.Expr) -> bool:
    return isinstance(leaf, ir.Call) and leaf.method == "cpu"


def _repair(facts: FileFacts, hold: Hold, state: str, style: str) -> Repair | None:
    from gpulint.analysis.questions.backward.cutting import against_cutting
    from gpulint.nodes import method_chain

    if not hold.leaves or _is_of_several(hold) or (state == "live" and hold.under_no_grad_fix):
        return None  # GPU201 offers no_grad for the whole evaluation, which leaves nothing to detach
    scalar = hold.value.has(SCALAR)
    if scalar and hold.number_uses and style == "auto":
        methods: tuple[str, ...] = ("item",)
    elif hold.value.has(LARGE) and hold.container and not scalar and not hold.is_slot:
        methods = ("detach", "cpu")
    else:
        methods = ("detach",)
    if "cpu" in methods and all(_is_on_host(leaf) for leaf in hold.leaves):
        methods = ("detach",)
    changes = tuple(Replace(leaf.node, method_chain(leaf.node, methods)) for leaf in hold.leaves)
    call = "".join(f".{method}()" for method in methods)
    why = against_cutting(facts.analysis, hold)
    if not why and "cpu" in methods:
        why = f"what reads `{hold.holder}` finds a tensor on the CPU"
    return Repair.unless(why, f"hold the value without its graph: `{call}`", changes)


def _is_of_several(hold: Hold) -> bool:
    """Whether what is held is a list or a tuple, as far as the code tells: what a list is extended by, `out[1:]` of what a
    module gives."""
    if hold.are_tensors:
        return False
    return hold.how == "extend" or any(
        isinstance(leaf, ir.Sub) and isinstance(leaf.index, ir.Slice) for leaf in hold.leaves
    )
