"""What speaks against cutting what is kept from its graph: who may want the graph, or something else than a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpulint.rules._held.cuts import Cut, is_summand, is_whole

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import in_text_order
from gpulint.analysis.evaluate.consumers import ANY, Use, consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.outcome import place_in
from gpulint.analysis.queries.stores.graph_state import backwards
from gpulint.analysis.queries.stores.shown import shown
from gpulint.analysis.queries.stores.stores import Owner, Store, graph_in
from gpulint.answers import Answer, confidence_of, doubts_of

_OUT_OF_SIGHT: Final = frozenset({"given", "too much", "called", "optimized", "copied"})


def against(
    asked: Asked, found: Iterable[Cut], store: Store, owner: Owner | None, state: str, holder: str
) -> str:
    """Why what is kept might be needed with its graph, or be no tensor, in one clause; empty where it is proven that neither is so."""
    for cut in found:
        what = f"`{asked.source(cut.node)}`"
        is_shown = shown(asked.evaluator, cut.node, cut.frame)
        if not (is_shown or _is_freed_summand(asked, cut, store, state)):
            return f"{what} may be no tensor"
        if state == "retained":
            return f"its graph is kept for another backward, which may go through `{holder}`"
        freed = _freed_by(asked, cut)
        if state == "freed" and freed is None:
            return f"no backward is seen to go through all of {what}: a later one may"
        always = freed is not None and _is_always(freed, cut, store)
        if freed is not None and always and _comes_after(freed, cut):
            continue  # a later backward would not get through it
        ran = freed if freed is not None and always else ()
        within = {where.function for one in ran for where in one.frame.around}  # which run the backwards
        kept_by_others = owner is None or owner.kind not in ("local", "outer")
        elsewhere = kept_by_others and cut.frame.function not in within
        uses = consumers(asked.evaluator, cut.node, cut.frame, "graph")
        why = _wanted(uses, holder, within) or _unseen_reader(asked, cut, owner, holder)
        why = why or (f"whoever reads `{holder}` may train on it" if elsewhere else "")
        if why:
            return why
    return ""


def _is_freed_summand(asked: Asked, cut: Cut, store: Store, state: str) -> bool:
    """Whether a network's output that a backward has gone through is added to a number: no tuple or dict of tensors is."""
    value = asked.evaluator.value_of(cut.node, cut.frame)
    seen = state == "freed" and value.kind == "tensor" and not value.assumptions
    return seen and is_summand(cut, store) and is_whole(asked, cut)


def _wanted(uses: Iterable[Use], holder: str, ran: set[Function]) -> str:
    """Who may go backward through what a cut is made of. What a function returns comes after the backwards that it runs itself."""
    for use in uses:
        if use.role == "returned" and use.frame.function not in ran:
            return f"`{holder}` is returned, and the caller may train on it"
        if use.role == "stored" and "." in use.name and not ran:
            return f"`{use.name}` keeps it, and whoever reads that may train on it"
        if use.role == "fed":
            return "it goes into the next forward, and a backward may go through that"
        if use.role in _OUT_OF_SIGHT or (use.role == "method" and use.path):
            called = getattr(use.node, "func", None)
            name = ast.unparse(called) if called is not None else holder
            return f"`{name}` is not seen, and may run a backward"
    return ""


def _unseen_reader(asked: Asked, cut: Cut, owner: Owner | None, holder: str) -> str:
    """Code that is not seen and gets to the object that keeps it, in the function that gives it there: a method of the function's own
    object that no class in sight has, or whatever is given the object."""
    function, flow, evaluator = cut.frame.function, cut.frame.flow, asked.evaluator
    if owner is None or not owner.attributes:
        return ""
    root = owner.key.partition(".")[0]
    for use in flow.uses.get(root, ()):
        above: Any = flow.parents.get(use)
        outer = flow.parents.get(above)
        is_method = isinstance(above, ast.Attribute) and getattr(outer, "func", None) is above
        call = outer if is_method or isinstance(above, ast.keyword) else above
        cls = function.cls if root == function.self_name else evaluator.value_of(use, cut.frame).ref
        seen: Any = is_method
        if is_method and isinstance(cls, Class):
            seen = evaluator.method(cls, above.attr) or evaluator.fields(cls, above.attr)
        if isinstance(call, ast.Call) and call.func is not use and not seen:
            return f"`{ast.unparse(call.func)}` is not seen, and may train on `{holder}`"
    return ""


def _comes_after(freed: Iterable[Use], cut: Cut) -> bool:
    """Whether the backwards have run by the time that something is kept."""
    flow = cut.frame.flow
    own = flow.order.get(flow.statement_of(cut.node), -1)
    places = (place_in(cut.frame.function, one.node, one.frame) for one in freed)
    return all(at is not None and flow.order.get(flow.statement_of(at), own) < own for at in places)


def _freed_by(asked: Asked, cut: Cut) -> list[Use] | None:
    """The backwards that go through all the graphs behind something; None where they leave one out."""
    several = graph_in(asked.evaluator, asked.evaluator.value_of(cut.node, cut.frame))
    calls = (one for value in several for one in in_text_order(value.origins) if one[1] is not None)
    through = [backwards(asked.evaluator, *one) for one in calls]
    return [one for uses in through for one in uses] if through and all(through) else None


def _is_always(freed: Iterable[Use], cut: Cut, store: Store) -> bool:
    """Whether one of some backwards runs wherever something is stored."""
    around = _conditions(cut.node, cut.frame) | _conditions(store.at, store.frame)
    more = [_conditions(one.node, one.frame) - around for one in freed]
    sides = {one for conditions in more if len(conditions) == 1 for one in conditions}
    return any(not one for one in more) or any((test, not wanted) in sides for test, wanted in sides)


def _conditions(node: Any, frame: Frame) -> set[tuple[str, bool]]:
    conditions = (one for at, where in frame.leading_to(node) for one in where.flow.conditions(at))
    return {(ast.unparse(test), wanted) for test, wanted in conditions}


# -- of averages


def is_read_after(asked: Asked, store: Store) -> str:
    """Who may go backward through what is computed from an average, in one clause: in whatever function reads it."""
    wanted = _OUT_OF_SIGHT | {"backward", "returned", "fed"}
    found = any(one.role in wanted for one in read_by(asked, store))
    return "what it gives is computed from the average, and a backward may go through that" if found else ""


def read_by(asked: Asked, store: Store) -> Iterator[Use]:
    """What becomes of what is in an attribute, by whichever function of the program reads it, beside the statement that stores."""
    name, cls, names = attribute_of(store.container), store.frame.function.cls, asked.evaluator.names
    own = store.frame.flow.statement_of(store.at)
    path = (ANY,) if isinstance(store.container, ast.Subscript) else ()
    files = asked.program.searched(name, store.frame.function.file) if name and cls is not None else ()
    for function in (one for file in files for one in (file.body, *file.functions) if name in one.words):
        of_another = f"{function.self_name}.{name}" if cls and names.is_apart(function, cls) else ""
        keys = [one for one in function.flow.uses if one.endswith(f".{name}") and one != of_another]
        for use in (use for key in keys for use in function.flow.uses[key]):
            tests = _conditions(use, asked.root(function)) if function is store.frame.function else set()
            phases = {(test, not wanted) for test, wanted in tests if test.endswith(".training")}
            if function.flow.statement_of(use) is not own and not phases & _conditions(store.at, store.frame):
                yield from consumers(asked.evaluator, use, asked.root(function), "graph", path)


def attribute_of(node: Any) -> str:
    """The attribute that a container is, or is in."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else ""


# -- what another rule mends


def is_under_no_grad_fix(asked: Asked, forwards: set[tuple[Any, Frame]], answers: tuple[Answer, ...]) -> bool:
    """Whether GPU201 tells of all the forwards behind it, as surely, and offers to switch grad off around them."""
    least = len(doubts_of(answers))
    covered = {at for at, doubt in _under_no_grad(asked).items() if doubt <= least}
    places = [{node, *(at for at, _ in frame.chain())} for node, frame in forwards]
    switched = (grad_mode(asked.evaluator, *one).by for one in forwards)  # on again
    return bool(places) and not any(map(covered.isdisjoint, places)) and all(by is None for by in switched)


def _under_no_grad(asked: Asked) -> dict[Any, int]:
    """The forwards around which GPU201 offers to switch grad off, with how much it doubts that."""
    from gpulint.rules.gpu201_eval_with_grad import EvalWithGrad

    memo = asked.root(asked.file.body).memo
    if _under_no_grad not in memo:
        claims = [one for one in EvalWithGrad().claims(asked, {}) if confidence_of(one.answers) is not None]
        found = memo[_under_no_grad] = {}
        for one in claims:
            repair = one.report().repair if one.report is not None else None
            if callable(repair) and repair() is not None:
                function, doubts = _function_of(asked, one.at), doubts_of(one.answers)
                beside = (other for other in claims if _function_of(asked, other.at) is function)
                found |= {one.at: len(doubts) for one in beside if doubts_of(one.answers) == doubts}
    return memo[_under_no_grad]  # type: ignore[no-any-return]


def _function_of(asked: Asked, node: Any) -> Function:
    return asked.file.function_at(node.lineno)
