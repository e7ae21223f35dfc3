"""The interpreter: values through statements, branches joined, loops to a fixpoint, and what is held across iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulint.analysis.code import ir
from gpulint.analysis.code.oom import is_oom_handler, leaves_frames, recovery_in
from gpulint.analysis.code.reading import NUMBER_TYPES, asked_for_eval_mode, asked_for_number, conjuncts
from gpulint.analysis.flow.loops import Loops
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.constants import truth
from gpulint.analysis.values.state import State, merge
from gpulint.analysis.values.values import (
    HOST,
    MAYBE,
    NUMBER,
    SCALAR,
    UNKNOWN,
    Kind,
    Val,
    container,
)


class Flow(Loops):
    """Runs one function's body over the lattice."""

    def run(self) -> State:
        self.enter()
        self.block(self.function.body)
        self.leave()
        return self.state

    def enter(self) -> None:
        """Bind the parameters: what the file's own callers agree on, what the annotation says, else a symbol."""
        state = self.state
        for position, param in enumerate(self.function.params):
            value = self.parameter(param, position)
            state.vars[param.name] = value
            state.born[param.name] = -1 if param.name == self.self_name else 0

    def parameter(self, param: ir.Param, position: int) -> Val:
        token = frozenset({self.file.param_token(self.function, param.name)})
        if position == 0 and param.name == self.self_name and self.cls is not None:
            return Val(Kind.INSTANCE, ref=self.cls)
        if param.name in self.given and param.kind not in ("star", "doublestar"):
            return self.given[param.name]
        if param.kind == "star":
            return container(Val(Kind.SYMBOL, token))
        if param.kind == "doublestar":
            return container(Val(Kind.SYMBOL, token))
        known = self.file.param_value(self.function, param)
        if known is not None:
            return known
        return Val(Kind.SYMBOL, token)

    def leave(self) -> None:
        exits = [state for state in (*self.exits, self.state) if state.alive or state in self.exits]
        merged = None
        for state in exits:
            state.alive = True
            merged = state if merged is None else merge(merged, state)
        self.state = merged if merged is not None else self.state
        if self.summary.returns is not None and self.file.framework_backward(self.function):
            self.free(self.summary.returns, False)
        self.summary.freed = self.state.freed
        self.settle(None)

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, body: list[ir.Stmt]) -> None:
        for statement in body:
            if not self.state.alive:
                return
            self.stmt = statement
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)

    def expression(self, statement: ir.ExprStmt) -> None:
        self.eval(statement.value)

    def return_(self, statement: ir.Return) -> None:
        value = self.eval(statement.value) if statement.value is not None else NUMBER
        self.returned(value)
        self.exits.append(self.state.copy())
        self.state.alive = False

    def yielded(self, value: Val) -> None:
        self.returned(container(value))
        self.summary.yield_grad = self.state.grad

    def jump(self, statement: ir.Jump) -> None:
        for value in statement.values:
            self.eval(value)
        if statement.kind == "raise":
            self.raises.append(self.state.copy())
        elif self.jumps:
            self.jumps[-1][statement.kind].append(self.state.copy())
        self.state.alive = False

    def delete(self, statement: ir.Delete) -> None:
        for target in statement.targets:
            if target.path is not None:
                self.state.forget(target.path)
                if target.path in self.state.vars:
                    self.state.vars[target.path] = UNKNOWN
                    self.state.born[target.path] = len(self.loops)

    def check(self, statement: ir.Check) -> None:
        for value in statement.values:
            self.eval(value)
            for condition in conjuncts(value):
                self._asserted(condition)

    def _asserted(self, test: ir.Expr) -> None:
        """`assert not net.training`, `assert isinstance(loader, DataLoader)`: from here on it is so."""
        network = asked_for_eval_mode(test)
        if network is not None:
            self.settled(network)
        elif isinstance(test, ir.Call) and test.func.path == "isinstance" and len(test.args) == 2:
            path = test.args[0].path
            known = self.file.annotated(test.args[1]) if path is not None else None
            if known is not None and self.eval(test.args[0]).kind in (Kind.UNKNOWN, Kind.SYMBOL):
                self.set_mode(path, known, False)

    def import_(self, statement: ir.Import) -> None:
        for local, _ in statement.bindings:
            self.state.vars.pop(local, None)

    def function_def(self, statement: ir.FunctionDef) -> None:
        function = statement.function
        for param in function.params:
            if param.default is not None:
                self.eval(param.default)
        self.state.assign(function.name, Val(Kind.FUNCTION, ref=function), len(self.loops))

    def class_def(self, statement: ir.ClassDef) -> None:
        info = self.file.classes.get(statement.cls.qualname)
        if info is not None:
            self.state.assign(statement.cls.name, Val(Kind.CLASS, ref=info), len(self.loops))

    # --- branches ------------------------------------------------------------------------------------------------

    def if_(self, statement: ir.If) -> None:
        self.eval(statement.test)
        decided = truth(statement.test, self.constants)
        if decided is not None:
            self.block(statement.body if decided else statement.orelse)
            return
        guarded = not is_availability(statement.test)
        if guarded:
            self.guards.append(statement)
        before = self.state
        self.state = self.narrowed(before.copy(), statement.test, True)
        self.block(statement.body)
        after = self.state
        self.state = self.narrowed(before.copy(), statement.test, False)
        self.block(statement.orelse)
        if guarded:
            self.guards.pop()
        self.state = merge(after, self.state)

    def narrowed(self, state: State, test: ir.Expr, holds: bool) -> State:
        """`isinstance(x, Tensor)`, `x is None`, `x.requires_grad`: where the test says x is no tensor, it is none."""
        negated = False
        while isinstance(test, ir.Op) and test.op == "not":
            test, negated = test.operands[0], not negated
        path: str | None = None
        if isinstance(test, ir.Call) and test.method in ("isinstance", "is_tensor") and test.args:
            path = test.args[0].path
            if test.method == "isinstance" and not _names_tensor(test):
                negated = not negated
                if _names_only(test, _COLLECTIONS):
                    if path is not None:
                        state.collections = {**state.collections, path: holds == negated}
                    return self._as_collection(state, path, holds == negated)
                if not _names_number(test):
                    path = None
        elif isinstance(test, ir.Op) and (asked := _asked_for_collection(test)) is not None:
            state.collections = {**state.collections, asked: holds != negated}
        elif isinstance(test, ir.Op) and (asked := asked_for_number(test)) is not None:
            path, negated = asked, negated != (test.op in ("is", "=="))
        elif isinstance(test, ir.Op) and test.op in ("is", "is not") and _is_none(test.operands[1]):
            path = test.operands[0].path
            negated = negated != (test.op == "is")
        if path is not None and holds == negated and path in state.vars:
            state.vars[path] = HOST if not isinstance(test, ir.Op) else NUMBER
        return state

    def _as_collection(self, state: State, path: str | None, is_one: bool) -> State:
        """`isinstance(x, tuple)`: there x is no tensor, and what is in it may be anything."""
        known = state.vars.get(path) if path is not None else None
        if is_one and path is not None and known is not None and known.kind is Kind.GRAPH:
            state.vars[path] = container(Val(Kind.GRAPH, known.tokens, (known.flags | MAYBE) & ~SCALAR))
        return state

    def match(self, statement: ir.Match) -> None:
        subject = self.eval(statement.subject)
        before = self.state
        merged = before.copy()
        self.guards.append(statement)
        for names, guard, body in statement.cases:
            self.state = before.copy()
            for name in names:
                self.state.assign(name, Val(Kind.UNKNOWN, subject.tokens), len(self.loops))
            if guard is not None:
                self.eval(guard)
            self.block(body)
            merged = merge(merged, self.state)
        self.guards.pop()
        self.state = merged

    def with_(self, statement: ir.With) -> None:
        before = self.state.grad
        for expr, target in statement.items:
            value = self.eval(expr)
            self.enter_context(expr, value)
            if target is not None:
                self.bind(target, UNKNOWN if value.kind is Kind.CONTEXT else value, None)
        self.block(statement.body)
        self.state.grad = before

    def try_(self, statement: ir.Try) -> None:
        before = self.state.copy()
        raises, self.raises = self.raises, []
        self.block(statement.body)
        after = self.state
        interrupted = before
        for state in (*self.raises, after):
            copy = state.copy()
            copy.alive = True
            interrupted = merge(interrupted, copy)
        self.raises = raises
        if after.alive:
            self.block(statement.orelse)
        merged = self.state
        for handler in statement.handlers:
            self.state = interrupted.copy()
            self.state.grad = before.grad
            if handler.name is not None:
                self.state.assign(handler.name, UNKNOWN, len(self.loops))
            self.handler(statement, handler)
            merged = merge(merged, self.state)
        self.state = merged
        if statement.final:
            alive = self.state.alive
            if not alive:
                self.state = interrupted.copy()
            self.guards.append(statement)  # what cleans up whatever happened is no part of the step
            self.block(statement.final)
            self.guards.pop()
            self.state.alive = self.state.alive and alive

    def handler(self, statement: ir.Try, handler: ir.Handler) -> None:
        self.handlers_open += 1
        if self.record and is_oom_handler(handler, self.asks_for_oom):
            self.tried = self.heavy_calls(statement.body)
            found = recovery_in(handler, self.recovers, self.asks_for_oom)
            if found is not None and leaves_frames(statement.body, self.qualified):
                self.oom_event(statement, handler, found)
        self.block(handler.body)
        self.handlers_open -= 1

    def asks_for_oom(self, call: ir.Call) -> bool:
        """`if should_reduce_batch_size(error):` of a function that looks for the message."""
        if self.qualified(call.func.path) in frameworks.OOM_QUESTIONS:
            return True
        callee = self.eval_quietly(call.func)
        return callee.kind is Kind.FUNCTION and "OutOfMemoryError" in self.file.evidence[callee.ref].words

    def heavy_calls(self, body: list[ir.Stmt]) -> frozenset[str]:
        """What the `try` tried, as far as it can be the work that ran out of memory."""
        found: set[str] = set()
        for _, call in ir.calls(body):
            path = call.func.path
            if path is None or call.method in _LIGHT or _is_note(call):
                continue
            callee = self.eval_quietly(call.func)
            if (
                callee.kind is Kind.MODULE
                or path == self.function.name
                or (callee.kind is Kind.FUNCTION and not (found and self.only_arranges(callee)))
            ):
                found.add(path)
            elif callee.kind in (Kind.UNKNOWN, Kind.SYMBOL) and isinstance(call.func, (ir.Name, ir.Attr)):
                if path.startswith(f"{self.self_name}.") and path.count(".") == 1:
                    found.add(path)
        return frozenset(found)

    def only_arranges(self, callee: Val) -> bool:
        """Whether a function neither loops nor runs anything of torch's, as far as its text says: called after the
        work, it sets a size or resets a loader for the next."""
        evidence = self.file.evidence[callee.ref]
        summary = callee.ref.home.summary(callee.ref)
        runs = summary is None or summary.forwards or summary.backwards or summary.steps
        return not runs and not evidence.has_loop


_LIGHT = frozenset(
    "put put_nowait send emit print log info debug warning error append update to cuda cpu item len str range".split()
)


def _asked_for_collection(test: ir.Op) -> str | None:
    """`x` of `type(x) is list` and `type(x).__name__ == "list"`."""
    if test.op not in ("is", "==") or len(test.operands) != 2:
        return None
    left, right = test.operands
    if isinstance(left, ir.Attr) and left.attr == "__name__":
        left = left.base
    name = right.value if isinstance(right, ir.Const) else right.path
    if (
        isinstance(left, ir.Call)
        and left.func.path == "type"
        and len(left.args) == 1
        and name in _COLLECTIONS
    ):
        return left.args[0].path
    return None


def _is_note(call: ir.Call) -> bool:
    """`report("out of memory")`: what is given a text alone tells somebody something."""
    if len(call.args) != 1 or call.keywords:
        return False
    given = call.args[0]
    return isinstance(given, ir.Text) or (isinstance(given, ir.Const) and isinstance(given.value, str))


def _is_none(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is None


def _names_tensor(call: ir.Call) -> bool:
    return any(
        isinstance(part, (ir.Attr, ir.Name)) and (part.path or "").endswith(("Tensor", "Variable"))
        for arg in call.args[1:]
        for part in ir.walk(arg)
    )


_COLLECTIONS = frozenset({"tuple", "list", "dict", "set", "Mapping", "Sequence", "OrderedDict"})


def _names_only(call: ir.Call, names: frozenset[str]) -> bool:
    """Whether each of the types that `isinstance` is given is one of these."""
    types = [item for arg in call.args[1:] for item in (arg.items if isinstance(arg, ir.Seq) else (arg,))]
    return bool(types) and all((item.path or "").rpartition(".")[2] in names for item in types)


def _names_number(call: ir.Call) -> bool:
    """Whether one of the types is a number's, a text's or an array's."""
    return any(
        (part.path or "").rpartition(".")[2] in NUMBER_TYPES for arg in call.args[1:] for part in ir.walk(arg)
    )


def is_availability(test: ir.Expr) -> bool:
    """Whether a test only asks for a GPU: `torch.cuda.is_available()`, `device.type == "cuda"`, `use_cuda`."""
    if isinstance(test, ir.Op) and test.op == "and":
        return all(is_availability(operand) for operand in test.operands)
    for part in ir.walk(test):
        if isinstance(part, ir.Op) and part.op not in ("and", "or", "==", "in", "is not"):
            return False
        if isinstance(part, ir.Const) and isinstance(part.value, str) and "cuda" not in part.value:
            return False
    words = [
        part.attr if isinstance(part, ir.Attr) else part.id
        for part in ir.walk(test)
        if isinstance(part, (ir.Attr, ir.Name))
    ]
    named = any("cuda" in word.lower() or word in ("is_available", "gpu", "use_gpu") for word in words)
    return named or any(isinstance(part, ir.Const) and isinstance(part.value, str) for part in ir.walk(test))


_STATEMENTS: dict[type, Callable[[Flow, Any], None]] = {
    ir.Assign: Flow.assign,
    ir.AugAssign: Flow.aug_assign,
    ir.ExprStmt: Flow.expression,
    ir.Return: Flow.return_,
    ir.Jump: Flow.jump,
    ir.Delete: Flow.delete,
    ir.Check: Flow.check,
    ir.Import: Flow.import_,
    ir.FunctionDef: Flow.function_def,
    ir.ClassDef: Flow.class_def,
    ir.If: Flow.if_,
    ir.Match: Flow.match,
    ir.With: Flow.with_,
    ir.Try: Flow.try_,
    ir.For: Flow.for_,
    ir.While: Flow.while_,
}
