"""Values that are dead before the peak but still bound, and backwards that wait until several batches are summed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import deletes, goes_backward, is_vocabulary, rebinds
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.facts import (
    Backward,
    DeferredBackward,
    Forward,
    FunctionFacts,
    Hold,
    LateRelease,
    Loop,
)
from gpulint.analysis.values.values import SCALAR, Grad, Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


# --- deferred backward -------------------------------------------------------------------------------------------


def deferred_backwards(facts: FunctionFacts) -> list[DeferredBackward]:
    """Sums of whole-model losses over batches with a single backward behind the loop, or every k iterations of it."""
    found: list[DeferredBackward] = []
    for hold in facts.holds:
        if (
            hold.value.kind is not Kind.GRAPH
            or not hold.rounds.loops
            or not hold.graph.consumed
            or hold.graph.fed_back
        ):
            continue
        loop = hold.rounds.loops[-1]
        if hold.place.how == "item":
            continue  # what is made of slots, the loss of all of them, need not be a sum
        if hold.place.container and not hold.value.has(SCALAR):
            continue  # outputs that one loss compares with each other: views, prototypes, layers
        if not loop.over_data or hold.place.holder_kind != "variable" or loop in facts.recurrent:
            continue
        if _goes_at_once(facts, hold):
            continue
        backward = _backward_of(facts, hold)
        if (
            backward is not None
            and _forward_of(facts, hold, loop) is not None
            and not _walks(backward, hold.place.holder)
        ):
            found.append(DeferredBackward(hold, backward))
    return found


def _goes_at_once(facts: FunctionFacts, hold: Hold) -> bool:
    """Whether a backward through the sum follows in the very block that adds to it: it holds what one round has made."""
    through = {id(b.stmt) for b in facts.backwards if b.tokens & hold.place.holder_tokens}
    for block in ir.every_block(hold.function.body):
        if hold.stmt in block:
            return any(id(statement) in through for statement in block[block.index(hold.stmt) + 1 :])
    return False


def _backward_of(facts: FunctionFacts, hold: Hold) -> Backward | None:
    """The one backward through the sum: outside the loop, or in it every k iterations."""
    loop = hold.rounds.loops[-1]
    for backward in facts.backwards:
        if backward.autograd_grad or backward.create_graph or not backward.tokens & hold.place.holder_tokens:
            continue
        if loop not in backward.loops or (backward.every_k and backward.loops[-1] is loop):
            return backward
    return None


def _walks(backward: Backward, holder: str) -> bool:
    """Whether the backward goes through the held losses one by one: `for loss in losses: loss.backward()`."""
    return any(
        isinstance(loop.stmt, ir.For) and any(_names(loop.stmt.iterable, word) for word in (holder,))
        for loop in backward.loops
    )


def _forward_of(facts: FunctionFacts, hold: Hold, loop: Loop) -> Forward | None:
    """The forward, in the same loop, of a model on this iteration's data, that made the loss."""
    names = loop_names(loop.stmt)
    for forward in facts.forwards:
        if forward.site not in hold.value.tokens or loop not in forward.loops or not forward.module.proven:
            continue
        inputs = {
            part.id
            for arg in forward.call.children()[1:]
            for part in ir.walk(arg)
            if isinstance(part, ir.Name)
        }
        if inputs & names:
            return forward
    return None


def loop_names(stmt: ir.For | ir.While) -> set[str]:
    """The loop's targets, and names made from them in its body."""
    names: set[str] = set()
    if isinstance(stmt, ir.For):
        names = {part.id for part in ir.walk(stmt.target) if isinstance(part, ir.Name)}
    for statement in stmt.body:
        if isinstance(statement, ir.Assign) and statement.value is not None:
            used = {part.id for part in ir.walk(statement.value) if isinstance(part, ir.Name)}
            if used & names or "next" in used:
                for target in statement.targets:
                    names |= {part.id for part in ir.walk(target) if isinstance(part, ir.Name)}
    return names


# --- late release ------------------------------------------------------------------------------------------------


def late_releases(file: FileAnalysis, facts: FunctionFacts) -> list[LateRelease]:
    """Large outputs whose last use comes before a peak in the same iteration, or that live into the next forward."""
    found: list[LateRelease] = []
    for forward in facts.forwards:
        if not forward.loops or not forward.module.proven or forward.mode.guarded:
            continue
        loop = forward.loops[-1]
        late = _late(facts, forward, loop)
        if late is not None:
            late.unproven = _other_readers(file, facts.function, late.name)
            found.append(late)
    return found


# What reads names without naming them.
_READS_NAMES = frozenset("locals globals vars eval exec breakpoint embed".split())


def _other_readers(file: FileAnalysis, function: ir.Function, name: str) -> str:
    """In a clause, who may read a function's name besides its own statements."""
    for _, call in ir.calls(function.body):
        if (isinstance(call.func, ir.Name) and call.method in _READS_NAMES) or call.method == "set_trace":
            return f"`{call.method}` may read the name"
    if function is file.module.body:
        for other, evidence in file.evidence.items():
            if other is not function and name in evidence.words:
                return f"`{other.name}` may read the global name"
    return ""


def _late(facts: FunctionFacts, forward: Forward, loop: Loop) -> LateRelease | None:
    stmt = forward.stmt
    if not isinstance(stmt, ir.Assign) or len(stmt.targets) != 1 or stmt.value is None:
        return None
    name = _bound_name(stmt, forward)
    if name is None:
        return None
    later = _following(loop.stmt.body, stmt)
    if later is None:
        return None
    block = loop.stmt.body
    freed = next((other for other in later if deletes(other, name)), None)
    uses = [p for p, other in enumerate(later) if other is not freed and _mentions(other, name)]
    if not uses or _used_elsewhere(facts, later, stmt, name, freed):
        return None
    evidence = [later[position] for position in uses]
    last = evidence[-1]
    if (
        not isinstance(last, (ir.Assign, ir.AugAssign, ir.ExprStmt))
        or rebinds(last, name)
        or _keeps(last, name)
    ):
        return None
    if any(_derives(inner, name) for other in evidence for inner in ir.statements([other])):
        return None
    rest = later[uses[-1] + 1 : None if freed is None else later.index(freed)]
    peak = next((other for other in rest if goes_backward([other])), None)
    if forward.mode.grad is Grad.ENABLED and peak is not None:
        if not _is_large_for_loss(forward, evidence, name):
            return None
        return LateRelease(name, last, "backward", freed)
    if forward.mode.grad is Grad.DISABLED and loop.over_data and freed is None and not goes_backward(block):
        if not forward.result.dense or _in_loss(evidence, name):
            return (
                None  # a cross-entropy makes a second tensor of that size: releasing the first gains nothing
            )
        return LateRelease(name, last, "forward", None)
    return None


def _bound_name(stmt: ir.Assign, forward: Forward) -> str | None:
    """`logits` in `logits = model(x)` and `logits = model(x).logits`."""
    target = stmt.targets[0]
    value = stmt.value
    if (isinstance(value, ir.Attr) and value.attr == "logits") or (
        isinstance(value, ir.Sub)
        and isinstance(value.index, ir.Const)
        and value.index.value in ("out", "logits")
    ):
        value = value.base
    if isinstance(target, ir.Name) and value is forward.call:
        return target.id
    return None


def _following(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt] | None:
    """What runs after a statement in the same iteration, if it stands in the block or in `with` blocks of it."""
    for position, statement in enumerate(block):
        if statement is wanted:
            return block[position + 1 :]
        if isinstance(statement, ir.With):
            inner = _following(statement.body, wanted)
            if inner is not None:
                return inner + block[position + 1 :]
    return None


def _parts(block: list[ir.Stmt]) -> Iterator[ir.Expr]:
    return (part for statement in ir.statements(block) for part in ir.own_parts(statement))


def _mentions(statement: ir.Stmt, name: str) -> bool:
    return any(part.path == name or isinstance(part, ir.LambdaExpr) for part in _parts([statement]))


def _used_elsewhere(
    facts: FunctionFacts, later: list[ir.Stmt], stmt: ir.Stmt, name: str, freed: ir.Stmt | None
) -> bool:
    """Whether the name matters outside its binding and the statements behind it in the same iteration, or is deleted
    anywhere but where it is `freed`."""
    own = {id(inner) for inner in ir.statements(later)} | {id(stmt)}
    for statement in ir.statements(facts.function.body):
        if isinstance(statement, ir.Scope) and name in statement.names:
            return True
        if isinstance(statement, ir.FunctionDef):
            if any(part.path == name for part in _parts(statement.function.body)):
                return True
        if statement is not freed and deletes(statement, name):
            return True
        if id(statement) not in own and any(part.path == name for part in ir.own_parts(statement)):
            return True
    return False


def _keeps(statement: ir.Stmt, name: str) -> bool:
    """Whether the statement keeps the value itself, or a view of it, under another name or in a container."""
    value = statement.value if isinstance(statement, (ir.Assign, ir.ExprStmt)) else None
    if value is None or (isinstance(value, ir.Attr) and value.attr == "loss"):
        return False
    if isinstance(value, ir.Call) and value.method in ("append", "extend", "insert"):
        return any(_is_view_of(arg, name) for arg in value.args)
    return isinstance(statement, ir.Assign) and _is_view_of(value, name)


_VIEWS = frozenset(
    "view reshape flatten transpose permute squeeze unsqueeze detach narrow chunk split data t".split()
)


def _is_view_of(expr: ir.Expr, name: str) -> bool:
    while True:
        if isinstance(expr, ir.Name):
            return expr.id == name
        if isinstance(expr, (ir.Sub, ir.Attr)):
            expr = expr.base
        elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in _VIEWS:
            expr = expr.func.base
        else:
            return False


_COPIES = frozenset("softmax log_softmax sigmoid float clone contiguous".split())


def _derives(statement: ir.Stmt, name: str) -> bool:
    """Whether the statement makes another large value from this one: then that one is what counts."""
    if not isinstance(statement, ir.Assign) or statement.value is None:
        return _keeps(statement, name)
    value = statement.value
    if isinstance(value, ir.Attr) and value.attr == "loss":
        return False
    if _is_view_of(value, name):
        return True
    return isinstance(value, ir.Call) and value.method in _COPIES


def _is_large_for_loss(forward: Forward, evidence: list[ir.Stmt], name: str) -> bool:
    """Whether the value is scores over a vocabulary or over pixels on their way into a cross-entropy.

    Evidence is the model's kind, or that it is flattened to (-1, vocabulary) for the loss.
    """
    if forward.result.dense and (_in_loss(evidence, name) or _reads_loss(evidence, name)):
        return True
    return any(_flattens(arg, name) for call in _losses(evidence) for arg in call.args)


def _losses(evidence: list[ir.Stmt]) -> Iterator[ir.Call]:
    for _, call in ir.calls(evidence):
        if "cross_entropy" in call.method or LOSSY.search(call.method):
            yield call


def _in_loss(evidence: list[ir.Stmt], name: str) -> bool:
    return any(_names(arg, name) for call in _losses(evidence) for arg in call.args)


def _reads_loss(evidence: list[ir.Stmt], name: str) -> bool:
    """`loss = outputs.loss`: the only thing wanted of the whole output."""
    return any(
        isinstance(part, ir.Attr) and part.attr == "loss" and part.base.path == name
        for part in _parts(evidence)
    )


def _names(expr: ir.Expr, name: str) -> bool:
    return any(isinstance(part, ir.Name) and part.id == name for part in ir.walk(expr))


def _flattens(expr: ir.Expr, name: str) -> bool:
    """`logits.view(-1, vocab_size)`, `logits.reshape(-1, logits.size(-1))`."""
    for part in ir.walk(expr):
        if not (isinstance(part, ir.Call) and part.method in ("view", "reshape") and len(part.args) == 2):
            continue
        if not (isinstance(part.func, ir.Attr) and _names(part.func.base, name)):
            continue
        width = part.args[1]
        if is_vocabulary(width):
            return True
        if isinstance(width, ir.Call) and width.method == "size" and _names(width, name):
            return True
        if isinstance(width, ir.Sub) and isinstance(width.base, ir.Attr) and width.base.attr == "shape":
            return True
    return False
