"""Where a function uses its names, to tell whether every use of a result cuts its graph off."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.sightlines import seeing
from gpulint.analysis.code.uses import COMPARISONS
from gpulint.analysis.file import lookup
from gpulint.analysis.file.facts import Forward, FunctionFacts, Hold
from gpulint.analysis.questions.grad.strangers import Strangers
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import HOST_ATTRS, PAIRS
from gpulint.analysis.values.values import ParamToken

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


class Uses:
    """Where a function uses its names, to tell whether every use of a result cuts its graph off."""

    def __init__(self, file: FileAnalysis, function: ir.Function, through: Set[int]) -> None:
        """`through`: by id, the calls of networks, which give back in one graph what they are given."""
        self._file = file
        self._through = through
        self._packs = lookup.packs_sequences(file)
        self._inner = {
            word
            for other in file.module.functions
            if other.parent is function
            for word in file.evidence[other].words
        }
        self._names: dict[str, list[tuple[ir.Stmt, bool]]] = {}
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.Delete):
                continue
            bound = {id(target) for target in targets(statement)}
            for root in statement.expressions():
                self._note(statement, root, False, bound)
        self._body = function.body

    def _note(self, statement: ir.Stmt, expr: ir.Expr, cut: bool, bound: set[int]) -> None:
        if isinstance(expr, ir.Name):
            if id(expr) not in bound:
                self._names.setdefault(expr.id, []).append((statement, cut))
            return
        inner = cut or self._cuts(expr)
        for child in expr.children():
            self._note(statement, child, inner, bound)

    def _cuts(self, expr: ir.Expr) -> bool:
        packed = self._packs and isinstance(expr, ir.Attr) and expr.attr == "data"
        return (cuts_graph(expr) and not packed) or self._draws(expr)

    def is_cut(self, forward: Forward) -> bool:
        """Whether nothing of the forward's result is left with a graph: in its own statement, or at each use of the
        names that the statement binds."""
        statement = forward.stmt
        if any(self._cut_above(root, forward.call) for root in statement.expressions()):
            return True
        if not isinstance(statement, ir.Assign) or not _holds(statement.value, forward.call):
            return False
        return self._bound_are_cut(statement, 3)

    def is_unread(self, forward: Forward) -> bool:
        """Whether the names that the forward's statement binds to its result are bound anew before anything reads them."""
        statement = forward.stmt
        if not isinstance(statement, ir.Assign) or not _holds(statement.value, forward.call):
            return False
        return all(
            isinstance(target, ir.Name) and not self._is_read(target.id, statement)
            for target in targets(statement)
        )

    def _cut_above(self, expr: ir.Expr, call: ir.Call) -> bool:
        """Whether `call` stands inside something that cuts its graph off."""
        if expr is call:
            return False
        for child in expr.children():
            if any(part is call for part in ir.walk(child)):
                return self._cuts(expr) or self._cut_above(child, call)
        return False

    def _draws(self, expr: ir.Expr) -> bool:
        """Whether a library makes a picture of what it is given, without its graph."""
        return (
            isinstance(expr, ir.Call) and self._file.names.qualify(expr.func.path or "") in frameworks.DRAWING
        )

    def _bound_are_cut(self, statement: ir.Assign, depth: int) -> bool:
        names = targets(statement)
        value = statement.value
        if isinstance(value, ir.Call) and value.method in PAIRS and len(statement.targets) == 1:
            pair = statement.targets[0]
            if isinstance(pair, ir.Seq) and len(pair.items) == 2:
                names = [pair.items[0]]  # the indices carry no graph
        read = [
            target
            for target in names
            if not isinstance(target, ir.Name) or self._is_read(target.id, statement)
        ]
        return bool(names) and all(
            isinstance(target, ir.Name) and self._all_cut(target.id, statement, depth)
            for target in read or names
        )

    def _is_read(self, name: str, origin: ir.Stmt) -> bool:
        return bool(self._uses_of(name, origin)) or name in self._inner

    def _all_cut(self, name: str, origin: ir.Stmt, depth: int) -> bool:
        uses = self._uses_of(name, origin)
        if name in self._inner or not uses:
            return name.startswith("_") and not uses and name not in self._inner
        for statement, cut in uses:
            if cut:
                continue
            again = isinstance(statement, ir.Assign) and statement is not origin and depth > 0
            if not again or not self._bound_are_cut(statement, depth - 1):  # type: ignore[arg-type]
                return False
            if not self._only_computes(statement.value, name):  # type: ignore[attr-defined]
                return False
        return True

    def _uses_of(self, name: str, origin: ir.Stmt) -> list[tuple[ir.Stmt, bool]]:
        """The uses of the name as it is bound at `origin`, and not before or anew."""
        uses = self._names.get(name, [])
        if not uses:
            return uses
        seen = seeing(self._body, name, origin)
        return [use for use in uses if id(use[0]) in seen]

    def _only_computes(self, expr: ir.Expr, name: str) -> bool:
        """Whether a name stands in an expression only where tensors are computed: operators, methods, `torch.min`."""
        if _is_chain_of(expr, name):
            return True
        if not any(isinstance(part, ir.Name) and part.id == name for part in ir.walk(expr)):
            return True
        if isinstance(expr, ir.Call):
            qualified = self._file.names.qualify(expr.func.path or "") or ""
            computed = qualified.startswith("torch.") and expr.method in _COMPUTED
            if not computed and id(expr) not in self._through:
                return False
            parts: tuple[ir.Expr, ...] = (*expr.args, *(value for _, value in expr.keywords))
        elif isinstance(expr, ir.Op):
            parts = tuple(expr.operands)
        else:
            return False
        return all(self._only_computes(part, name) for part in parts)


_COMPUTED = frozenset("min max minimum maximum where clamp exp log abs sum mean".split())
_NUMBERS = frozenset({"float", "int", "len"})
_FILLING = frozenset({"append", "appendleft", "extend", "insert"})


def against_cutting(file: FileAnalysis, hold: Hold) -> str:
    """Why what a hold keeps might be needed with its graph, or be no tensor, in one clause; empty where it is proven that
    neither is so."""
    functions = file.function_facts
    what = hold.leaves[0].path if hold.leaves else None
    value = f"`{what}`" if what is not None else "what is held"
    if not hold.are_tensors:
        return f"{value} may be no tensor"
    if hold.unshown:
        return f"`{hold.unshown}` may be a number on some path: what makes it is not seen to give a tensor always"
    if hold.graph.state == "retained":
        return f"its graph is kept for another backward, which may go through `{hold.place.holder}`"
    if hold.place.keep is not None and (reason := _needed_by_callee(hold, value)):
        return reason
    own = hold.place.keep is None and hold.place.holder_kind == "attribute"
    of_module = hold.place.holder_kind == "attribute" and hold.place.method_of_module
    if hold.graph.state not in ("live", "freed") or (
        of_module and (hold.place.in_module or hold.graph.state == "live")
    ):
        return f"whoever reads `{hold.place.holder}` may train on it"
    if hold.graph.state == "freed" and not hold.graph.wholly_freed:
        return f"no backward is seen to go through all of {value}: a later one may"
    if beside := _kept_beside(functions, hold):
        return f"`{beside}` keeps {value} with its graph as well: without both of them nothing is freed"
    if own and (method := _unseen_method(file, hold.function)):
        return f"`{method}` is not seen, and may train on `{hold.place.holder}`"
    if hold.graph.state == "live" and (stranger := Strangers(functions).given(hold)):
        return f"`{stranger}` is not seen, and may run a backward"
    if hold.graph.state == "live" or may_be_left_to_others(functions, hold):
        if hold.graph.returned:
            return f"`{hold.place.holder}` is returned, and the caller may train on it"
        if hold.graph.escaped or own:
            return f"`{hold.place.holder}` is read by code that is not seen, which may train on it"
    return ""


def _kept_beside(functions: Sequence[FunctionFacts], hold: Hold) -> str:
    """Another list that the same round puts the same value into, of which nothing is told; empty where there is none."""
    names = {leaf.path for leaf in hold.leaves if leaf.path is not None}
    around = list(ir.statements(hold.loop.stmt.body)) if hold.loop is not None and names else []
    told = {
        id(other.stmt)
        for facts in functions
        if facts.function is hold.function
        for other in facts.holds
        if not other.rounds.bounded
    }
    lists = _lists_made(hold.function) - {t.path for one in around for t in targets(one)} if around else set()
    for statement in around:
        for call in ir.own_calls(statement) if id(statement) not in told else ():
            if call.method in _FILLING and isinstance(call.func, ir.Attr):
                owner = call.func.base
                root = owner.base if isinstance(owner, ir.Sub) else owner
                if root.path in lists and any(arg.path in names for arg in call.args):
                    return ast.unparse(owner.origin) if owner.origin is not None else call.method
    return ""


def _lists_made(function: ir.Function) -> set[str | None]:
    """The names that a function binds to a list or a dict of its own, which nothing bounds."""
    return {
        target.path
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign)
        if isinstance(statement.value, (ir.Seq, ir.DictDisplay))
        for target in statement.targets
    }


def goes_on_in_callee(hold: Hold) -> bool:
    """Whether the function that keeps its parameter also makes of it what it gives back: cut at the call, that has no
    graph either. The place to cut is where it is kept."""
    if hold.place.keep is None or hold.place.keep.function is hold.function:
        return False
    summary = hold.place.keep.function.home.summary(hold.place.keep.function)
    if summary is None or summary.returns is None:
        return False
    made = {token.name for token in summary.returns.tokens if isinstance(token, ParamToken)}
    return hold.place.keep.param in made | summary.escaped_params | summary.frees


def _needed_by_callee(hold: Hold, value: str) -> str:
    """The function that keeps its parameter may do other things with it, or give it back with its graph."""
    assert hold.place.keep is not None
    callee = hold.place.keep.function
    home: FileAnalysis = callee.home
    summary = home.summary(callee)
    if summary is None:
        return f"`{callee.qualname}` may want the graph of {value}"
    if hold.place.keep.param in summary.frees | summary.escaped_params:
        return f"`{callee.qualname}` may want the graph of {value}"
    statement = hold.stmt
    alone = isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call)
    if isinstance(statement, ir.ExprStmt) and alone and statement.value.origin is hold.at.origin:
        return ""
    given = any(
        isinstance(token, ParamToken) and token.name == hold.place.keep.param
        for token in (summary.returns.tokens if summary.returns is not None else ())
    )
    return f"what `{callee.qualname}` gives may need the graph of {value}" if given else ""


def _unseen_method(file: FileAnalysis, function: ir.Function) -> str | None:
    """A method that the function calls on its own object and that no class in sight has: it may read any attribute."""
    info = file.class_of(function)
    if info is None or not function.params:
        return None
    own = f"{function.params[0].name}."
    for _, call in ir.calls(function.body):
        path = call.func.path or ""
        name = path.removeprefix(own)
        if path.startswith(own) and "." not in name and lookup.called(file, function, call) is None:
            known = any(name in part.attrs for part in info.ancestors())
            if not known and path not in file.evidence[function].modules:
                return path
    return None


def may_be_left_to_others(functions: Sequence[FunctionFacts], hold: Hold) -> bool:
    """Whether the backwards that free a graph run under a condition: where they do not, the caller's may."""
    through = [
        backward
        for facts in functions
        if facts.function is hold.function
        for backward in facts.backwards
        if backward.tokens & hold.value.sites
    ]
    return bool(through) and all(backward.guarded for backward in through)


def cuts_graph(expr: ir.Expr) -> bool:
    """Whether the expression leaves nothing of its operands' graphs: `x.detach()`, `x.shape`, `float(x)`."""
    if isinstance(expr, ir.Attr):
        return expr.attr in HOST_ATTRS or expr.attr == "data"
    if isinstance(expr, ir.Call):
        if isinstance(expr.func, ir.Attr):
            return expr.method in NO_GRAPH
        return expr.method in _NUMBERS
    return isinstance(expr, ir.Op) and expr.op in COMPARISONS


def mixes(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether the forward's statement also computes with what may have a graph that is wanted: `mse(out, teacher(x).detach())`.

    Nothing can be meant by that which goes through the cut, nor what is left of the statement's value where it is cut
    later.
    """
    for root in forward.stmt.expressions():
        cut = _outermost_cut(root, forward.call)
        if cut is not None and cut is not root:
            names = _with_graphs(facts)
            params = {param.name for param in forward.function.params} - {"self", "cls"}
            if _reads_outside(root, cut, names, params):
                return True
    return False


def _outermost_cut(expr: ir.Expr, call: ir.Call) -> ir.Expr | None:
    if expr is call:
        return None
    for child in expr.children():
        if any(part is call for part in ir.walk(child)):
            return expr if cuts_graph(expr) else _outermost_cut(child, call)
    return None


def _with_graphs(facts: FunctionFacts) -> set[str]:
    """The names that a function binds to a network's results, or to what is made of them without cutting it off."""
    forwards = {id(forward.call) for forward in facts.forwards if forward.site is not None}
    found: set[str] = set()
    for _ in range(3):
        before = len(found)
        for statement in ir.statements(facts.function.body):
            if isinstance(statement, (ir.Assign, ir.AugAssign)) and statement.value is not None:
                if _carries(statement.value, forwards, found):
                    bound = [statement.target] if isinstance(statement, ir.AugAssign) else targets(statement)
                    found |= {target.path for target in bound if target.path is not None}
        if len(found) == before:
            break
    return found


def _carries(expr: ir.Expr, forwards: set[int], names: set[str]) -> bool:
    if cuts_graph(expr):
        return False
    if id(expr) in forwards or (expr.path is not None and expr.path in names):
        return True
    return any(_carries(child, forwards, names) for child in expr.children())


def _reads_outside(expr: ir.Expr, cut: ir.Expr, graphs: set[str], params: set[str]) -> bool:
    """Whether an expression, the part under `cut` left out, computes with one of the names that have graphs, or hands one
    of the function's parameters to a function: rewards and masks are added and multiplied."""
    if expr is cut or cuts_graph(expr):
        return False
    if expr.path is not None and expr.path in graphs:
        return True
    if isinstance(expr, ir.Call):
        given = (*expr.args, *(value for _, value in expr.keywords))
        if any(arg.path is not None and arg.path in params for arg in given):
            return True
    return any(_reads_outside(child, cut, graphs, params) for child in expr.children())


def _is_chain(expr: ir.Expr | None, call: ir.Call) -> bool:
    """Whether an expression is the call itself, or methods, items and attributes of its result."""
    while expr is not None and expr is not call:
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            expr = expr.func.base
        elif isinstance(expr, (ir.Sub, ir.Attr)):
            expr = expr.base
        else:
            return False
    return expr is call


def _holds(expr: ir.Expr | None, call: ir.Call) -> bool:
    """Whether an expression is such a chain, or a tuple or a list with one in it."""
    if isinstance(expr, ir.Seq):
        return any(_holds(item, call) for item in expr.items)
    return _is_chain(expr, call)


def _is_chain_of(expr: ir.Expr | None, name: str) -> bool:
    while expr is not None and not isinstance(expr, ir.Name):
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            expr = expr.func.base
        elif isinstance(expr, (ir.Sub, ir.Attr)):
            expr = expr.base
        else:
            return False
    return expr is not None and expr.id == name
