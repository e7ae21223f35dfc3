"""The interpreter: values through statements, branches joined, loops to a fixpoint, and what is held across iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulint.analysis import ir
from gpulint.analysis.calling import Calling
from gpulint.analysis.evidence import arithmetic_leaves, is_accumulation
from gpulint.analysis.facts import Loop
from gpulint.analysis.gradmode import is_neutral_context
from gpulint.analysis.oom import is_oom_handler, recovery_in
from gpulint.analysis.peaks import loop_names
from gpulint.analysis.state import State, merge
from gpulint.analysis.values import (
    BOUNDED,
    HOST,
    LOADER,
    MAYBE,
    NUMBER,
    OUTPUT,
    SCALAR,
    UNKNOWN,
    UNSURE_GRAD,
    Grad,
    Kind,
    Val,
    container,
    element,
)

_DEEP = 3  # loops nested deeper than this are followed once: their fixpoint is that of the outer passes


class Flow(Calling):
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

    def assign(self, statement: ir.Assign) -> None:
        if statement.value is None:
            return
        source = statement.value
        if len(statement.targets) == 1 and is_accumulation(statement.targets[0], source):
            self.accumulate_by_assignment(statement.targets[0], source)
            return
        if len(statement.targets) == 1 and self.grows_by_cat(statement.targets[0], source):
            return
        value = self.eval(source)
        if isinstance(source, ir.Const) and source.value is None:
            self.started_none.update(target.path for target in statement.targets if target.path is not None)
        if statement.annotation is not None and value.kind is Kind.UNKNOWN:
            value = self.file.annotated(statement.annotation) or value
        for target in statement.targets:
            self.bind(target, value, source)
        if isinstance(source, ir.Comp):
            self.comprehended(statement.targets[0], source, value)

    def grows_by_cat(self, target: ir.Expr, source: ir.Expr) -> bool:
        """`outputs = torch.cat([outputs, new])`: a tensor that grows is a container that grows."""
        if not isinstance(source, ir.Call) or source.method not in ("cat", "concat", "vstack", "hstack") or not source.args:
            return False
        parts = source.args[0]
        if target.path is None or not isinstance(parts, ir.Seq):
            return False
        added = tuple(part for part in parts.items if part.path != target.path)
        if len(added) == len(parts.items) or not added:
            return False
        total = self.eval(source)
        value = self.eval(added[0])
        token = self.held(None, "cat", target.path, value, added, True, False)
        self.update(target.path, total if token is None else total.with_tokens((token,)))
        return True

    def bind(self, target: ir.Expr, value: Val, source: ir.Expr | None) -> None:
        if isinstance(target, ir.Seq):
            self.unpack(target, value, source)
            return
        if isinstance(target, ir.Wrapper):
            self.bind(target.value, container(element(value)), None)
            return
        path = target.path
        if path is None:
            if isinstance(target, ir.Sub):
                self.store_item(target, value, source)
            elif isinstance(target, ir.Attr):
                self.eval(target.base)
            return
        value = self.strengthened(path, value)
        if isinstance(target, ir.Sub):
            self.store_item(target, value, source)
        elif isinstance(target, ir.Name) and target.id in self.evidence.declared:
            self.state.assign(path, value, -1)
            self.file.store_global(self, target.id, value)
        else:
            self.state.assign(path, value, len(self.loops))
        if isinstance(target, ir.Attr):
            self.store_attribute(path, value)
        if isinstance(source, ir.DictDisplay):
            self.bind_fields(path, source, value)

    def bind_fields(self, path: str, source: ir.DictDisplay, value: Val) -> None:
        if value.items is None:
            return
        for (key, _), item in zip(source.pairs, value.items, strict=True):
            if isinstance(key, ir.Const):
                self.state.assign(f"{path}[{key.value!r}]", item, len(self.loops))

    def unpack(self, target: ir.Seq, value: Val, source: ir.Expr | None) -> None:
        parts = (
            source.items if isinstance(source, ir.Seq) and len(source.items) == len(target.items) else None
        )
        starred = any(isinstance(item, ir.Wrapper) for item in target.items)
        known = (
            value.items
            if value.items is not None and len(value.items) == len(target.items) and not starred
            else None
        )
        single = element(value)
        if value.kind is Kind.GRAPH and value.has(OUTPUT):
            # The parts of an unknown module's tuple: tensors, most likely, but a float is possible.
            single = Val(Kind.GRAPH, value.tokens, value.flags | MAYBE)
        for position, item in enumerate(target.items):
            part = known[position] if known is not None else single
            self.bind(item, part, parts[position] if parts is not None else None)

    def strengthened(self, path: str, value: Val) -> Val:
        """`loss.backward()` somewhere in this function proves that `loss` is a tensor with a graph."""
        if value.kind is Kind.GRAPH and value.has(MAYBE) and path in self.evidence.terms:
            return value.without_flags(MAYBE | OUTPUT)
        if path in self.evidence.terms:
            if value.kind is Kind.GRAPH and value.has(MAYBE):
                return value.without_flags(MAYBE | OUTPUT)
            if value.kind is Kind.UNKNOWN and self.state.grad is not Grad.DISABLED and self.calls_unseen():
                return self.opaque(path, value, 0)
        if path not in self.evidence.backward and not self.file.backward_attribute(self.function, path):
            return value
        scalar = SCALAR if path in self.evidence.scalars else 0
        if value.kind is Kind.GRAPH:
            return value.without_flags(MAYBE | OUTPUT).with_flags(scalar)
        if value.kind in (Kind.UNKNOWN, Kind.SYMBOL) and self.state.grad is not Grad.DISABLED:
            return self.opaque(path, value, scalar)
        return value

    def calls_unseen(self) -> bool:
        return isinstance(self.stmt, ir.Assign) and isinstance(self.stmt.value, ir.Call)

    def opaque(self, path: str, value: Val, flags: int) -> Val:
        """A graph made by something unseen: it may share parts with others unless only this iteration's data went in."""
        if self.stmt is None:
            return value
        site = self.file.site(self.stmt.node, "loss", self.function, path)
        inside = bool(self.loops) and self.closed(self.stmt) and _optimizes(self.loops[-1])
        site.depth = len(self.loops) if inside else -1
        self.state.fresh(site)
        extra = UNSURE_GRAD if self.state.grad is Grad.UNKNOWN else 0
        return Val(Kind.GRAPH, value.tokens | {site}, flags | extra)

    def closed(self, statement: ir.Stmt) -> bool:
        """Whether everything that went into the statement's call was made in this iteration, modules aside."""
        if not isinstance(statement, ir.Assign) or statement.value is None:
            return False
        stack: list[ir.Expr] = [statement.value]
        while stack:
            expr = stack.pop()
            if isinstance(expr, ir.Call):
                stack += expr.children()[1:]
                if isinstance(expr.func, ir.Attr):
                    stack.append(expr.func.base)
            elif isinstance(expr, ir.Name):
                if self.is_older_data(expr.id):
                    return False
            elif isinstance(expr, ir.Comp):
                return False
            else:
                stack += expr.children()
        return True

    def is_older_data(self, name: str) -> bool:
        known = self.state.vars.get(name)
        if known is None or known.kind not in (Kind.UNKNOWN, Kind.SYMBOL, Kind.CONTAINER, Kind.GRAPH):
            return False
        if self.with_evidence(name, known).kind is Kind.MODULE:
            return False
        return self.state.born[name] < len(self.loops)

    def store_item(self, target: ir.Sub, value: Val, source: ir.Expr | None) -> None:
        """`x[k] = v`: a list or dict keeps v under a key that changes, a tensor slot keeps v's graph."""
        base = self.eval(target.base)
        path = target.base.path
        constant = isinstance(target.index, ir.Const)
        if not constant:
            self.eval(target.index)
        if path is None:
            return
        if (
            base.kind in (Kind.CONTAINER, Kind.UNKNOWN, Kind.SYMBOL)
            and not constant
            and not isinstance(target.index, ir.Slice)
        ):
            if base.kind is Kind.CONTAINER or value.kind in (Kind.GRAPH, Kind.SYMBOL):
                token = self.held(
                    None,
                    "item",
                    path,
                    value,
                    (source,) if source is not None else (),
                    True,
                    base.has(BOUNDED),
                )
                self.add_to(path, base, value if token is None else value.with_tokens((token,)))
        elif base.kind is Kind.CONTAINER:
            self.add_to(path, base, value)
        elif base.kind is Kind.DEVICE and value.kind is Kind.GRAPH:
            self.state.vars[path] = Val(Kind.GRAPH, value.tokens, value.flags | MAYBE)
        if target.path is not None:
            self.state.assign(target.path, value, len(self.loops))

    def aug_assign(self, statement: ir.AugAssign) -> None:
        target = statement.target
        value = self.eval(statement.value)
        current = self.eval(target)
        path = target.path
        if path is None and isinstance(target, ir.Sub):
            path = target.base.path
        if path is None:
            return
        if value.kind is Kind.CONTAINER or current.kind is Kind.CONTAINER:
            if statement.op == "+":
                self.extend_by_sum(statement, path, current, value)
            return
        leaves = tuple(arithmetic_leaves(statement.value))
        token = (
            self.held(None, "add", path, value, leaves, False, False)
            if statement.op in ("+", "-", "*", "/")
            else None
        )
        result = self.arithmetic(statement.op, [current, value])
        if current.kind in (Kind.UNKNOWN, Kind.SYMBOL) and value.kind is Kind.GRAPH:
            result = Val(Kind.GRAPH, current.tokens | value.tokens, value.flags)
        self.update(path, result if token is None else result.with_tokens((token,)))

    def extend_by_sum(self, statement: ir.AugAssign, path: str, current: Val, value: Val) -> None:
        base = current if current.kind is Kind.CONTAINER else container()
        leaves: tuple[ir.Expr, ...] = (statement.value,)
        if isinstance(statement.value, ir.Seq):
            leaves = statement.value.items
        token = self.held(None, "extend", path, value, leaves, True, base.has(BOUNDED))
        stored = element(value)
        self.add_to(path, base, stored if token is None else stored.with_tokens((token,)))

    def accumulate_by_assignment(self, target: ir.Expr, source: ir.Expr) -> None:
        assert target.path is not None
        leaves = tuple(leaf for leaf in arithmetic_leaves(source) if leaf.path != target.path)
        values = [self.eval(leaf) for leaf in leaves]
        total = self.eval(source)
        if total.kind is Kind.CONTAINER:
            added = container(element(total))
            token = self.held(None, "extend", target.path, added, leaves, True, total.has(BOUNDED))
            stored = element(total)
            self.add_to(target.path, total, stored if token is None else stored.with_tokens((token,)))
            return
        added_value: Val | None = None
        for value in values:
            if value.is_tensor or value.kind is Kind.SYMBOL:
                added_value = value if added_value is None else self.arithmetic("+", [added_value, value])
        token = None
        if added_value is not None:
            token = self.held(None, "add", target.path, added_value, leaves, False, False)
        self.update(target.path, total if token is None else total.with_tokens((token,)))

    def update(self, path: str, value: Val) -> None:
        """Change a place without making it anew: it stays as old as it was."""
        born = self.state.born_at(path)
        self.state.forget(path)
        value = self.strengthened(path, value)
        self.state.vars[path] = value
        if path not in self.state.born:
            self.state.born[path] = self.default_born(path) if born is None else born
        if "." in path or "[" in path:
            self.state.dotted.add(path)
            self.store_attribute(path, value)
        elif path in self.evidence.declared:
            self.file.store_global(self, path, value)

    def expression(self, statement: ir.ExprStmt) -> None:
        value = self.eval(statement.value)
        if value.kind is Kind.CONTEXT:
            self.bare_contexts.append(statement)

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

    def enter_comprehension(self, expr: ir.Comp) -> None:
        target, iterable, _ = expr.clauses[0]
        loop = self.file.comprehension_loop(expr, target, iterable, self.function, self.loops[-1] if self.loops else None)
        loop.over_data = self.iterates_data(loop.stmt)
        self.loops.append(loop)

    def leave_comprehension(self, expr: ir.Comp) -> None:
        self.loops.pop()

    def comprehended(self, target: ir.Expr, source: ir.Comp, value: Val) -> None:
        """`losses = [step(x) for x in loader]` holds what each iteration made."""
        if self.stmt is None or target.path is None or value.elem is None or source.kind == "generator":
            return
        loop = self.file.loops[id(source)]
        self.loops.append(loop)
        before = self.state.born.get(target.path)
        self.state.born[target.path] = len(self.loops) - 1
        token = self.held(None, "comprehension", target.path, value.elem, (source.elements[-1],), True, False)
        if token is not None and target.path in self.state.vars:
            self.state.vars[target.path] = self.state.vars[target.path].with_tokens((token,))
        if before is None:
            self.state.born.pop(target.path)
        else:
            self.state.born[target.path] = before
        self.settle(loop)
        self.loops.pop()

    # --- branches ------------------------------------------------------------------------------------------------

    def if_(self, statement: ir.If) -> None:
        self.eval(statement.test)
        guarded = not _is_availability(statement.test)
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
                if not _names_number(test):
                    path = None
        elif isinstance(test, ir.Op) and test.op in ("is", "is not") and _is_none(test.operands[1]):
            path = test.operands[0].path
            negated = negated != (test.op == "is")
        if path is not None and holds == negated and path in state.vars:
            state.vars[path] = HOST if not isinstance(test, ir.Op) else NUMBER
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
        grad = self.state.grad
        for expr, target in statement.items:
            value = self.eval(expr)
            if value.kind is Kind.CONTEXT:
                self.state.grad = value.ref
            elif not self.is_neutral(expr, value):
                mode = self.context_mode(expr, value)
                if mode is not None:
                    self.state.grad = mode
            if target is not None:
                self.bind(target, UNKNOWN if value.kind is Kind.CONTEXT else value, None)
        self.block(statement.body)
        self.state.grad = grad

    def is_neutral(self, expr: ir.Expr, value: Val) -> bool:
        return is_neutral_context(expr) or value.kind in (Kind.HOST, Kind.MODULE, Kind.LOADER, Kind.CONTAINER)

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
            self.block(statement.final)
            self.state.alive = self.state.alive and alive

    def handler(self, statement: ir.Try, handler: ir.Handler) -> None:
        self.handlers_open += 1
        if self.record and is_oom_handler(handler, self.qualified):
            self.tried = self.heavy_calls(statement.body)
            found = recovery_in(handler, self.recovers, self.qualified)
            if found is not None:
                self.oom_event(statement, handler, found)
        self.block(handler.body)
        self.handlers_open -= 1

    def heavy_calls(self, body: list[ir.Stmt]) -> frozenset[str]:
        """What the `try` tried, as far as it can be the work that ran out of memory."""
        found: set[str] = set()
        for _, call in ir.calls(body):
            path = call.func.path
            if path is None or call.method in _LIGHT:
                continue
            callee = self.eval_quietly(call.func)
            if callee.kind in (Kind.MODULE, Kind.FUNCTION) or path == self.function.name:
                found.add(path)
            elif callee.kind in (Kind.UNKNOWN, Kind.SYMBOL) and isinstance(call.func, (ir.Name, ir.Attr)):
                if path.startswith(f"{self.self_name}.") and path.count(".") == 1:
                    found.add(path)
        return frozenset(found)

    # --- loops ---------------------------------------------------------------------------------------------------

    def for_(self, statement: ir.For) -> None:
        over_loader = self.iterates_loader(statement.iterable)
        self.loop(statement, over_loader)

    def while_(self, statement: ir.While) -> None:
        self.loop(statement, False)

    def iterates_loader(self, iterable: ir.Expr) -> bool:
        for part in ir.walk(iterable):
            if isinstance(part, (ir.Name, ir.Attr)) and part.path is not None:
                found = self.state.vars.get(part.path)
                if found is not None and found.kind is Kind.LOADER:
                    return True
                if found is None and isinstance(part, ir.Attr) and self.attribute(part).kind is LOADER.kind:
                    return True
        return False

    def iterates_data(self, statement: ir.For | ir.While) -> bool:
        """Whether the iterable can be batches: not `range(n)`, not the layers of a model, not a display."""
        if isinstance(statement, ir.While):
            return any(call.method == "next" for _, call in ir.calls(statement.body))
        if any(call.method == "next" and isinstance(call.func, ir.Name) for _, call in ir.calls(statement.body)):
            return True
        iterable = statement.iterable
        while isinstance(iterable, ir.Call) and iterable.method in (
            "enumerate",
            "tqdm",
            "zip",
            "iter",
            "track",
            "islice",
            "log_every",
        ):
            if not iterable.args:
                return False
            iterable = iterable.args[0]
        if isinstance(iterable, ir.Call) and iterable.method in ("range", "trange"):
            chunked = any(isinstance(part, ir.Op) and part.op == "//" for arg in iterable.args for part in ir.walk(arg))
            return len(iterable.args) == 3 or chunked or _slices_by(statement)
        if isinstance(iterable, (ir.Seq, ir.DictDisplay, ir.Const)):
            return False
        record, self.record = self.record, False
        value = self.eval(iterable)
        self.record = record
        if value.kind in (Kind.MODULE, Kind.HOST, Kind.NUMBER):
            return False
        return not (
            value.kind is Kind.CONTAINER
            and value.elem is not None
            and value.elem.kind in (Kind.HOST, Kind.MODULE, Kind.GRAPH)
        )

    def loop(self, statement: ir.For | ir.While, over_loader: bool) -> None:
        """Two passes to learn what comes round the back edge, one more that records."""
        record = self.record
        loop = self.file.loop(statement, self.function, self.loops[-1] if self.loops else None)
        loop.over_loader |= over_loader
        loop.over_data = loop.over_loader or self.iterates_data(statement)
        entry = self.state.copy()
        self.record = False
        if record or len(self.loops) < _DEEP:
            back = self.iteration(statement, loop)
            self.state = merge(entry.copy(), back)
        if record:
            loop.forwards = loop.backwards = loop.steps = 0
            self.record = True
        back = self.iteration(statement, loop)
        self.record = record
        if isinstance(statement, ir.While) and _always(statement.test):
            exits = self.broken.copy()
        else:
            exits = [merge(entry, back), *self.broken]
        result = exits[0] if exits else _dead(entry)
        for state in exits[1:]:
            result = merge(result, state)
        result.grad = (
            entry.grad
            if result.alive and entry.grad is not Grad.UNKNOWN and result.grad is Grad.UNKNOWN
            else result.grad
        )
        self.state = result.copy()
        self.block(statement.orelse)

    def iteration(self, statement: ir.For | ir.While, loop: Loop) -> State:
        """Run the body once; gives the state at the back edge and leaves the broken-out states in `broken`."""
        self.loops.append(loop)
        self.jumps.append({"break": [], "continue": []})
        self.stmt = statement
        if isinstance(statement, ir.For):
            self.bind_iteration(statement.target, statement.iterable)
        else:
            self.eval(statement.test)
        guards, self.guards = self.guards, []
        self.block(statement.body)
        self.guards = guards
        jumps = self.jumps.pop()
        back = self.state
        for state in jumps["continue"]:
            state.alive = True
            back = merge(back, state)
        if self.record:
            self.state = back
            self.settle(loop)
        self.loops.pop()
        self.broken = jumps["break"]
        for state in self.broken:
            state.alive = True
        return back


def _optimizes(loop: Loop) -> bool:
    return any(call.method in ("step", "zero_grad") for _, call in ir.calls(loop.stmt.body))


def _slices_by(loop: ir.For) -> bool:
    """`x[i * n : (i + 1) * n]`, `x[begin:end]` with both made from the loop's index: the loop runs through chunks."""
    names = loop_names(loop)
    for statement in ir.statements(loop.body):
        for root in statement.expressions():
            for part in ir.walk(root):
                if isinstance(part, ir.Sub) and isinstance(part.index, ir.Slice) and len(part.index.parts) == 2:
                    if all(any(isinstance(p, ir.Name) and p.id in names for p in ir.walk(end)) for end in part.index.parts):
                        return True
    return False


_LIGHT = frozenset("print log info debug warning error append update to cuda cpu item len str range".split())


def _dead(state: State) -> State:
    copy = state.copy()
    copy.alive = False
    return copy


def _always(test: ir.Expr) -> bool:
    return isinstance(test, ir.Const) and bool(test.value)


def _is_none(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is None


def _names_tensor(call: ir.Call) -> bool:
    return any(
        isinstance(part, (ir.Attr, ir.Name)) and (part.path or "").endswith(("Tensor", "Variable"))
        for arg in call.args[1:]
        for part in ir.walk(arg)
    )


def _names_number(call: ir.Call) -> bool:
    return any(
        isinstance(part, ir.Name) and part.id in ("float", "int", "Number", "str")
        for arg in call.args[1:]
        for part in ir.walk(arg)
    )


def _is_availability(test: ir.Expr) -> bool:
    """Whether a test only asks for a GPU: `torch.cuda.is_available()`, `device.type == "cuda"`, `use_cuda`."""
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
    return any("cuda" in word.lower() or word in ("is_available", "gpu", "use_gpu") for word in words)


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
