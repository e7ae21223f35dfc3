"""What GPU101 and GPU107 tell of values that are kept where the flow of values loses sight of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.record import How

from gpulint.analysis.code import ir
from gpulint.analysis.values.values import Site, with_inner
from gpulint.answers import Considered, Question, Verdict, confidence_of, doubts_of
from gpulint.findings import Severity
from gpulint.rule import Cost, Repair, Replace, Report

if TYPE_CHECKING:
    from gpulint.rules.detect.kept.record import Kept

    from gpulint.analysis.file.asking import FileFacts
    from gpulint.analysis.file.facts import Hold

_FREED = Cost(
    "its own bytes and its graph's nodes, for each iteration, but no activations",
    "at most 512 B a step on the GPU, and 131 KiB of host memory, for a 4-layer language model; H200, torch 2.11",
)
_LIVE = Cost(
    "every activation behind it, for as long as no backward frees them",
    "925 MiB a step for a 4-layer language model; H200, torch 2.11",
)
_EITHER = Cost(
    "its own bytes each call where a backward follows, every activation behind it where none does",
    "512 B a call where a backward follows; H200, torch 2.11",
)
_ONE = Cost(
    "the graph of one call, alive beside the next",
    "925 MiB for a 4-layer language model, where no backward frees it; H200, torch 2.11",
)
_CHAIN = Cost(
    "host memory that grows with every update, and every activation where no backward frees them",
    "23.3 KiB a step of host memory for an 8-layer MLP; H200, torch 2.11",
)


def told_here(facts: FileFacts, holds: list[Hold]) -> frozenset[int]:
    """The rows where the flow of values has already led to a claim: what it tells there wins."""
    from gpulint.rules.detect.averages.gathering import averages

    rows = {hold.at.row for hold in holds}
    return frozenset(rows | {average.stmt.row for average in facts.ask(averages)})


def kept_for(facts: FileFacts, code: str) -> Iterator[Kept]:
    """What a rule has to say of it, each place once."""
    from gpulint.rules.detect.kept.all import everything

    for kept in facts.ask(everything):
        if _code_of(kept) == code:
            yield kept


def _code_of(kept: Kept) -> str:
    if kept.how is How.AVERAGED:
        return "GPU107"
    return "GPU101"


def considered_kept(facts: FileFacts, code: str) -> Iterator[Considered]:
    """The claims that were considered, as `explain` shows them."""
    for kept in kept_for(facts, code):
        yield Considered(kept.at, kept.holder, kept.answers)


def report_kept(facts: FileFacts, code: str) -> Iterator[Report]:
    """The claims that hold, where nothing else is told."""
    standing = [kept for kept in kept_for(facts, code) if confidence_of(kept.answers) is not None]
    if not standing:
        return
    holds = _told_holds(facts)
    told = told_here(facts, holds)
    sources = _sources(holds)
    grown = {(hold.function, hold.place.holder) for hold in holds}
    for kept in standing:
        by_caller = kept.how in (How.RETURNED, How.ENTRY) and kept.function in sources
        is_first_value = (
            kept.how is How.CACHED and (kept.function, kept.holder) in grown
        )  # `if self.mean is None: self.mean = loss`, and an average from then on
        if kept.at.row not in told and not by_caller and not is_first_value:
            yield _report(facts, kept)


def _told_holds(facts: FileFacts) -> list[Hold]:
    from gpulint.rules._held import answers

    return [hold for hold in facts.holds() if confidence_of(answers(hold, facts)) is not None]


def _sources(holds: list[Hold]) -> frozenset[ir.Function]:
    """The functions of whose results it is told where a caller in this file keeps them: one cause, one finding."""
    sites = (site for hold in holds for site in with_inner(hold.value.sites))
    return frozenset(site.function for site in sites if isinstance(site, Site) and site.function is not None)


def _report(facts: FileFacts, kept: Kept) -> Report:
    message, reason, cost = _texts(kept)
    doubts = doubts_of(kept.answers)
    known = facts.analysis.facts.get(kept.function)
    unless = known.only_called_elsewhere if known is not None else (kept.function,)
    return Report(
        kept.at,
        message,
        reason,
        cost,
        Severity.INFO if len(doubts) > 1 else Severity.WARNING,
        lambda: _repair(kept),
        unless_guarded=() if kept.freed or _is_as_handed_over(kept) else unless,
        doubts=doubts,
        subject=kept.holder,
    )


def _is_as_handed_over(kept: Kept) -> bool:
    """Whether a parameter itself is put by: what graph it has it has from the caller, whatever the grad mode is here."""
    params = {param.name for param in kept.function.params}
    return kept.how is How.LISTED and isinstance(kept.value, ir.Name) and kept.value.id in params


def _texts(kept: Kept) -> tuple[str, str, Cost]:
    """The message, the reason and the cost."""
    what, holder = _shown(kept.value), f"`{kept.holder}`"
    cost = _FREED if kept.freed else _EITHER
    freed = "backward has gone through it: the graph's nodes stay as long as the value is held"
    live = "grad is on where it is made, and nothing detaches it"
    reason = freed if kept.freed else live
    if kept.how in (How.SUMMED, How.LISTED):
        return f"{holder} {kept.how.value} `{what}` together with its autograd graph", reason, cost
    if kept.how is How.ENTRY:
        return (
            f"`{what}` goes into {kept.holder if ' ' in kept.holder else holder} with its autograd graph, unlike the entries beside it",
            "`.cpu()`, `.mean()` and `.to()` keep the graph; the entries beside it are detached or made numbers",
            cost,
        )
    if kept.how is How.RETURNED and " " in kept.holder:
        return f"{kept.holder} keeps the autograd graph of `{what}` until the epoch's end", reason, cost
    if kept.how is How.RETURNED:
        return (
            f"{holder} returns `{what}` with its autograd graph, after the backward through it",
            reason,
            cost,
        )
    if kept.how is How.STORED:
        return f"{holder} keeps `{what}` with its autograd graph until the next call", live, _ONE
    if kept.how is How.CACHED:
        return f"{holder} keeps `{what}` together with its autograd graph for later calls", live, _LIVE
    return (
        f"{holder} takes in `{what}` with its graph at every update: its own graph grows without end",
        live,
        _CHAIN,
    )


def _shown(expr: ir.Expr, limit: int = 40) -> str:
    """The code of an expression, without libcst's tree: most of these are not told, for want of confidence."""
    text = ast.unparse(expr.origin)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_tensor(kept: Kept) -> bool:
    return not any(
        answer.question is Question.TENSOR and answer.verdict is Verdict.OPEN for answer in kept.answers
    )


def _repair(kept: Kept) -> Repair | None:
    """`.detach()` on what is kept, and on what is kept beside it; a doubt makes it unsafe."""
    from gpulint.fix.nodes import method_chain

    if not isinstance(kept.value, (ir.Name, ir.Attr, ir.Call)):
        return None
    if not kept.scalar or not _is_tensor(kept):
        return None  # it may be a tuple or a dict of tensors, or a number
    values = (kept.value, *(other for other in kept.others if isinstance(other, (ir.Name, ir.Attr, ir.Call))))
    changes = tuple(Replace(value.node, method_chain(value.node, ("detach",))) for value in values)
    return Repair(
        "unsafe", "keep it without its graph: `.detach()`", changes, "what reads it may want its graph"
    )
