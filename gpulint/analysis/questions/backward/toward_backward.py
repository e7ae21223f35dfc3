"""Whether what a hold collects goes into a backward after all, followed by its names alone.

Values lose sight of it in what cannot be seen: a distribution made of it, a class of somebody's own that stacks it, a
helper of another file that is handed the loss. Its names still lead from the list to the loss and to the backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import cuts, pairs, targets
from gpulint.analysis.code.uses import QUESTIONS
from gpulint.analysis.file.lookup import called
from gpulint.analysis.torch.backward import differentiates
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import HOST_ATTRS, NUMERIC_SINKS, SINK_METHODS
from gpulint.analysis.values.arguments import bind_sources
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import DeferredBackward, FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis

_ADDING = frozenset("append appendleft add extend extendleft insert put push update setdefault".split())
# What has no graph, whatever it is asked of.
_DEEP = 2  # calls within calls


def feeds_backward(file: FileAnalysis, hold: Hold) -> bool:
    """Whether a backward goes through what the holder was collected for, as far as names lead."""
    if hold.place.holder_kind == "attribute" and (found := _of_object(hold)) is not None:
        return _any_method_feeds(file, hold.function, found)
    if hold.place.holder_kind == "global":
        return False
    way = _Way(file, hold.function, set(), _DEEP)
    way.start, way.place = hold.stmt, hold.place.holder
    way.block(hold.function.body)
    return way.reached


def entry_feeds_backward(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether a backward of the function goes through one entry, `out["mask"]` or `out.mask`, as far as names lead."""
    way = _Way(file, function, {path}, _DEEP)
    way.block(function.body)
    return way.reached


def passed_to_backward(
    file: FileAnalysis,
    function: ir.Function,
    wanted: frozenset[str],
    makers: frozenset[int],
    calls: frozenset[int],
) -> set[int]:
    """Those of some calls, by identity, that are given something computed from names or by other calls, `makers`, and whose
    result goes backward in the function, as far as names lead."""
    way = _Way(file, function, set(wanted), _DEEP)
    way.held, way.sources, way.watched = wanted, makers, calls
    way.block(function.body)
    found: set[int] = set()
    for one in way.given:
        on = _Way(file, function, set(), _DEEP)
        on.sources = frozenset({one})
        on.block(function.body)
        if on.reached:
            found.add(one)
    return found


def rounds_depend(
    file: FileAnalysis, facts: FunctionFacts, deferred: DeferredBackward, unseen: bool = False
) -> bool:
    """Whether what a round adds to a sum is computed from what the forwards of an earlier round gave: a memory, a state, the
    mask of the frame before. A backward in each round would not be the same: it has freed what the next one goes through.
    `unseen`: any object that takes something in by a method is taken to keep it."""
    hold, loop = deferred.hold, deferred.hold.rounds.loops[-1]
    made = frozenset(id(f.call) for f in facts.forwards if f.site in hold.value.sites and loop in f.loops)
    way = _Way(file, hold.function, set(), _DEEP)
    way.sources, way.unseen_keep = made, unseen
    way.block(loop.stmt.body)
    way.sources = frozenset()
    way.carried -= {hold.place.holder, *cuts(loop.stmt.body, file.detachers)}
    way.asked = hold
    way.block(loop.stmt.body)
    return way.added


def _of_object(hold: Hold) -> str | None:
    """`losses` of `self.losses`."""
    function = hold.function
    head, _, rest = hold.place.holder.partition(".")
    own = function.params[0].name if function.cls is not None and function.params else None
    return rest.partition("[")[0] if head == own and rest else None


def _any_method_feeds(file: FileAnalysis, function: ir.Function, attr: str) -> bool:
    """The same for what an object keeps: any of its methods may take it up."""
    info = file.class_of(function)
    attrs = {attr}
    if info is None:
        return False
    methods = {method.name: method for part in info.ancestors() for method in part.cls.methods.values()}
    for _ in range(3):
        before = len(attrs)
        for method in methods.values():
            own = f"{method.params[0].name}." if method.params else ""
            if method.name == "__init__" or not own:
                continue
            way = _Way(file, method, {own + name for name in attrs}, _DEEP)
            way.block(method.body)
            if way.reached:
                return True
            attrs |= {path[len(own) :] for path in way.seen if path.startswith(own)}
        if len(attrs) == before:
            break
    return False


class _Way:
    """Runs through a function's text in order. `carried` are the places that have something of what is followed."""

    def __init__(self, file: FileAnalysis, function: ir.Function, carried: set[str], depth: int) -> None:
        self.file = file
        self.function = function
        self.carried = carried
        self.seen = set(carried)
        self.depth = depth
        self.reached = False
        self.start: ir.Stmt | None = None  # the statement that puts something in `place`
        self.place = ""
        self.sources: frozenset[int] = frozenset()  # calls that make what is followed
        self.unseen_keep = False  # `bank.write(x)` may put x into the bank
        self.asked: Hold | None = None
        self.added = False  # what `asked` puts by has something of it
        self.held: frozenset[str] = frozenset()  # names that have it whatever they are bound to
        self.watched: frozenset[int] = frozenset()  # calls of which it is asked whether they are given it
        self.given: set[int] = set()

    def block(self, body: list[ir.Stmt]) -> None:
        for statement in body:
            self._statement(statement)
            if statement is self.start:
                self._mark(self.place)

    def _statement(self, statement: ir.Stmt) -> None:
        if self.asked is not None and statement is self.asked.stmt:
            self.added |= any(self._carries(leaf) for leaf in self.asked.leaves)
        if self.carried or self.sources:
            for call in ir.own_calls(statement):
                self._call(call)
        if self.unseen_keep and isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            self._taken_in(statement.value)
        if isinstance(statement, ir.Assign):
            for target, value in pairs(statement):
                self._bind(target, value)
        elif isinstance(statement, ir.AugAssign):
            if self._carries(statement.value):
                self._put(statement.target)
        elif isinstance(statement, ir.Return):
            if statement.value is not None and self.file.framework_backward(self.function):
                self.reached |= self._carries(statement.value)
        elif isinstance(statement, ir.FunctionDef):
            self.block(statement.function.body)
        elif isinstance(statement, (ir.For, ir.While)):
            self._loop(statement)
        else:
            self._branches(statement)

    def _loop(self, statement: ir.For | ir.While) -> None:
        for _ in range(2):
            if isinstance(statement, ir.For):
                for target in targets(statement):
                    self._bind(target, statement.iterable)
            before = set(self.carried)
            self.block(statement.body)
            self.carried |= before
            if not self.carried:
                break
        self.block(statement.orelse)

    def _branches(self, statement: ir.Stmt) -> None:
        """Each branch may be taken or not; the body of a `with` is."""
        before = set(self.carried)
        after: set[str] = set() if isinstance(statement, ir.With) else set(before)
        for inner in statement.blocks():
            self.carried = set(before)
            self.block(inner)
            after |= self.carried
        self.carried = after

    def _bind(self, target: ir.Expr, value: ir.Expr) -> None:
        """A name bound to something else has it no more; an object or a container keeps what it has."""
        places = [target]
        while places:
            place = places.pop()
            if isinstance(place, ir.Seq):
                places += place.items
            elif isinstance(place, ir.Wrapper):
                places.append(place.value)
            elif self._carries(value):
                self._put(place)
            elif isinstance(place, (ir.Name, ir.Attr)) and place.path not in {None, *self.held}:
                self.carried.discard(place.path or "")

    def _put(self, target: ir.Expr) -> None:
        """Something is put in a place: the whole of a local object or container has it then."""
        while isinstance(target, ir.Sub):
            target = target.base
        path = target.path
        if path is None:
            return
        self._mark(path)
        head, _, rest = path.partition(".")
        own = self.function.params[0].name if self.function.cls is not None and self.function.params else None
        if rest and head != own:
            self._mark(head)

    def _mark(self, path: str) -> None:
        self.carried.add(path)
        self.seen.add(path)

    def _carries(self, expr: ir.Expr) -> bool:
        """Whether an expression has something of it, with the graph."""
        stack = [expr]
        while stack:
            part = stack.pop()
            if id(part) in self.sources or (part.path is not None and part.path in self.carried):
                return True
            if isinstance(part, ir.Attr) and (part.attr in HOST_ATTRS or part.attr == "data"):
                continue
            if isinstance(part, ir.Op) and part.op in QUESTIONS:
                continue
            if isinstance(part, ir.Call) and _gives_no_graph(part):
                continue
            stack += part.operands[1:] if isinstance(part, ir.Op) and part.op == "if" else part.children()
        return False

    # --- calls ---------------------------------------------------------------------------------------------------

    def _call(self, call: ir.Call) -> None:
        given = [arg for arg in (*call.args, *(value for _, value in call.keywords)) if self._carries(arg)]
        owner = call.func.base if isinstance(call.func, ir.Attr) else None
        if given and id(call) in self.watched:
            self.given.add(id(call))
        if not given and (owner is None or not self._carries(owner)):
            return
        if differentiates(self.file.names.qualify(call.func.path or ""), call.method):
            self.reached = True
        elif given and call.method in _ADDING and owner is not None:
            self._put(owner)
        elif given:
            self._handed(call)

    def _taken_in(self, call: ir.Call) -> None:
        """`bank.write(x)`, whose result nobody wants."""
        given = (*call.args, *(value for _, value in call.keywords))
        if isinstance(call.func, ir.Attr) and any(self._carries(arg) for arg in given):
            self._put(call.func.base)

    def _handed(self, call: ir.Call) -> None:
        """A function of the project is followed into. Who cannot be seen and gets a loss, and after it an optimizer, is
        taken to run the backward."""
        callee = self._callee(call)
        if callee is None:
            places = [place for place, arg in enumerate(call.args) if self._carries(arg)]
            self.reached |= bool(places) and any(map(self._is_optimizer, call.args[places[0] + 1 :]))
        elif self.depth:
            is_method = callee.cls is not None and isinstance(call.func, ir.Attr)
            sources = bind_sources(callee, call, is_method)
            names = {name for name, source in sources.items() if self._carries(source)}
            home: FileAnalysis = callee.home
            way = _Way(home, callee, names, self.depth - 1)
            way.block(callee.body)
            self.reached |= way.reached

    def _callee(self, call: ir.Call) -> ir.Function | None:
        found = called(self.file, self.function, call)
        if found is not None or call.func.path is None:
            return found
        qualified = self.file.names.qualify(call.func.path)
        value = self.file.imported_value(qualified) if qualified is not None else None
        return value.ref if value is not None and value.kind is Kind.FUNCTION else None

    def _is_optimizer(self, expr: ir.Expr) -> bool:
        path = expr.path
        if path is None:
            return False
        known = self.file.evidence[self.function].optimizers
        return (path in known and "opt" in path.lower()) or any(
            param.name == path and (getattr(param.annotation, "path", None) or "").endswith("Optimizer")
            for param in self.function.params
        )


def _gives_no_graph(call: ir.Call) -> bool:
    if isinstance(call.func, ir.Name):
        return call.method in NUMERIC_SINKS
    return call.method in NO_GRAPH or call.method in SINK_METHODS
