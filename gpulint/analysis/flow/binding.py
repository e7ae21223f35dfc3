"""Assignment: names, attributes, items and tuples bound; sums and lists that grow; what a later backward proves."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import arithmetic_leaves, grown, is_accumulation
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.facts import Loop
from gpulint.analysis.flow.calling import Calling
from gpulint.analysis.flow.peaks import loop_names
from gpulint.analysis.torch.keeping import COUNTED
from gpulint.analysis.values.arguments import Args
from gpulint.analysis.values.records import field, proven, with_field
from gpulint.analysis.values.values import (
    BOUNDED,
    FIRST,
    HOST,
    LOSS,
    MAYBE,
    NAMED,
    OPEN,
    OUTPUT,
    SCALAR,
    SLOTS,
    UNSURE_GRAD,
    Grad,
    Kind,
    Val,
    container,
    element,
)


class Binding(Calling):
    """Binds values to places."""

    def assign(self, statement: ir.Assign) -> None:
        if statement.value is None:
            return
        source = statement.value
        if len(statement.targets) == 1:
            growing = grown(statement.targets[0], source)
            if is_accumulation(statement.targets[0], growing):
                self.accumulate_by_assignment(statement.targets[0], growing)
                return
            if self.grows_by_cat(statement.targets[0], growing):
                return
        value = self.eval(source)
        if value.kind is Kind.UNKNOWN and isinstance(source, ir.Call):
            value = self.as_made_elsewhere(statement.targets[0].path, source) or value
        if statement.annotation is not None and value.kind is Kind.UNKNOWN:
            value = self.file.annotated(statement.annotation) or value
        for target in statement.targets:
            self.bind(target, value, source)
        if isinstance(source, ir.Comp):
            self.comprehended(statement.targets[0], source, value)

    def as_made_elsewhere(self, path: str | None, source: ir.Call) -> Val | None:
        """`net = Net()` in one branch, `net = torch.load(path)` in the other: what is loaded whole is of the same class."""
        if path not in self.evidence.modules or self.qualified(source.func.path) != "torch.load":
            return None
        for statement in ir.statements(self.function.body):
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
                if any(target.path == path for target in statement.targets) and statement.value is not source:
                    made = self.eval_quietly(statement.value)
                    if made.kind is Kind.MODULE and made.ref is not None:
                        return made
        return None

    def grows_by_cat(self, target: ir.Expr, source: ir.Expr) -> bool:
        """`outputs = torch.cat([outputs, new])`: a tensor that grows is a container that grows."""
        if (
            not isinstance(source, ir.Call)
            or source.method not in ("cat", "concat", "vstack", "hstack")
            or not source.args
        ):
            return False
        parts = source.args[0]
        if target.path is None or not isinstance(parts, ir.Seq):
            return False
        added = tuple(part for part in parts.items if part.path != target.path)
        if len(added) == len(parts.items) or not added:
            return False
        total = self.eval(source)
        value = self.eval(added[0])
        if value.has(FIRST):  # what is joined is a tensor, and the first of a network's results has its graph
            value = value.without_flags(MAYBE)
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
            self.file.store_global(target.id, value)
        else:
            self.state.assign(path, value, len(self.loops))
        if isinstance(target, ir.Attr):
            self.store_attribute(path, value)
        if isinstance(source, ir.DictDisplay):
            self.bind_fields(path, source, value)
        elif path in self.evidence.fields:
            self.bind_proven(path, value)

    def bind_fields(self, path: str, source: ir.DictDisplay, value: Val) -> None:
        if value.items is None:
            return
        for (key, _), item in zip(source.pairs, value.items, strict=True):
            if isinstance(key, ir.Const):
                self.state.assign(f"{path}[{key.value!r}]", item, len(self.loops))

    def bind_proven(self, path: str, value: Val) -> None:
        """`out = step(batch)` of which `out["loss"].backward()` is called: that field has a graph."""
        fields = self.evidence.fields[path]
        if value.kind is Kind.CONTAINER and value.has(OPEN):
            for key in fields.keys:
                known = field(value, key)
                if known is not None:
                    self.state.assign(f"{path}[{key!r}]", known, len(self.loops))
        elif value.kind in (Kind.UNKNOWN, Kind.SYMBOL) and self.unseen_graphs():
            for attr in fields.attributes:
                self.state.assign(f"{path}.{attr}", self.opaque(path, value, SCALAR), len(self.loops))

    def unseen_graphs(self) -> bool:
        return self.state.grad is not Grad.DISABLED and self.calls_unseen()

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
        of_criterion = value.kind is Kind.GRAPH and value.has(LOSS) and not value.has(OUTPUT)
        if of_criterion:
            # The same of a criterion that is not seen: its loss comes first, and beside it counts as often as terms.
            single = Val(Kind.GRAPH, value.tokens, value.flags & ~SCALAR | MAYBE | OUTPUT)
        for position, item in enumerate(target.items):
            part = known[position] if known is not None else single
            if part is single and part.has(OUTPUT) and not position and not starred:
                part = value if of_criterion else part.with_flags(FIRST)
            if known is None and part.has(MAYBE) and COUNTED.search((item.path or "").rpartition(".")[2]):
                part = part.with_flags(NAMED)  # a tensor, if it is moved, but seldom with a graph
            self.bind(item, part, parts[position] if parts is not None else None)

    def strengthened(self, path: str, value: Val) -> Val:
        """`loss.backward()` somewhere in this function proves that `loss` is a tensor with a graph."""
        if path in self.evidence.texts and value.kind is Kind.GRAPH:
            self.file.impossible |= value.tokens
            return HOST
        if value.kind is Kind.GRAPH and value.has(MAYBE) and path in self.evidence.terms:
            return value.without_flags(MAYBE | OUTPUT)
        if (
            path in self.evidence.fields
            and value.kind in (Kind.UNKNOWN, Kind.SYMBOL)
            and self.unseen_graphs()
        ):
            keys = self.evidence.fields[path].keys
            if keys:
                return proven(keys, self.opaque(path, value, SCALAR))
        if path in self.evidence.terms:
            if value.kind is Kind.GRAPH and value.has(MAYBE):
                return value.without_flags(MAYBE | OUTPUT)
            unknown = value.kind is Kind.UNKNOWN and self.state.grad is not Grad.DISABLED
            if unknown and self.calls_unseen() and not self.calls_criterion():
                return self.opaque(path, value, 0)
        if path not in self.evidence.backward and not self.file.backward_attribute(self.function, path):
            return value
        scalar = SCALAR if path in self.evidence.scalars else 0
        if value.kind is Kind.CONTAINER:
            return _with_proven_loss(value)
        if value.kind is Kind.GRAPH:
            return value.without_flags(MAYBE | OUTPUT).with_flags(scalar)
        if value.kind in (Kind.UNKNOWN, Kind.SYMBOL) and self.state.grad is not Grad.DISABLED:
            return self.opaque(path, value, scalar)
        return value

    def calls_unseen(self) -> bool:
        return isinstance(self.stmt, ir.Assign) and isinstance(self.stmt.value, ir.Call)

    def calls_criterion(self) -> bool:
        """Whether the statement binds what a criterion of the project gives: its forward has said what that is."""
        call = self.stmt.value if isinstance(self.stmt, ir.Assign) else None
        callee = self.eval_quietly(call.func) if isinstance(call, ir.Call) else None
        return callee is not None and callee.kind is Kind.MODULE and isinstance(callee.ref, ClassInfo)

    def opaque(self, path: str, value: Val, flags: int) -> Val:
        """A graph made by something unseen: it may share parts with others unless only this iteration's data went in."""
        if self.stmt is None or self.file.other_autograd:
            return value
        site = self.file.site(self.stmt, "loss", self.function, path)
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
                if expr.method in ("pop", "popleft", "get", "popitem") and isinstance(expr.func, ir.Attr):
                    return False
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
            self.store_deep(target, value, source)
            return
        if base.kind is Kind.INSTANCE and source is not None:
            self.set_item(target, base, value, source)
            return
        if (
            base.kind in (Kind.CONTAINER, Kind.UNKNOWN, Kind.SYMBOL)
            and not constant
            and not isinstance(target.index, ir.Slice)
            and not (
                _is_region(target.index) and (value.kind is Kind.DEVICE or self.state.grad is Grad.DISABLED)
            )
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
            key = target.index.value if isinstance(target.index, ir.Const) else None
            changed = with_field(base, key, value)
            if changed is None:
                self.add_to(path, base, value)
            else:
                self.refill(path, changed)
        elif base.kind in (Kind.DEVICE, Kind.GRAPH) and value.kind is Kind.GRAPH:
            if isinstance(target.index, ir.Const) and isinstance(target.index.value, str):
                self.refill(
                    path, Val(Kind.GRAPH, base.tokens | value.tokens, MAYBE | NAMED)
                )  # a dict, no tensor
            elif self.state.grad is not Grad.DISABLED:  # a copy that autograd does not see leaves no graph
                self.set_slot(path, base, value, source, constant)
        if target.path is not None:
            self.state.assign(target.path, value, len(self.loops))

    def store_deep(self, target: ir.Sub, value: Val, source: ir.Expr | None) -> None:
        """`found[name][part] = v`: the outer dict keeps v, where each item of the data has a key of its own."""
        keys = [target.index]
        root = target.base
        while isinstance(root, ir.Sub) and root.path is None:
            keys.append(root.index)
            root = root.base
        path = root.path
        names = {part.id for key in keys for part in ir.walk(key) if isinstance(part, ir.Name)}
        items = any(
            isinstance(loop.stmt, ir.For)
            and (loop.over_data or loop.over_items)
            and names & loop_names(loop.stmt)
            for loop in self.loops
        )
        known = self.state.vars.get(path) if path is not None else None
        if path is None or not items or known is None or known.kind is not Kind.CONTAINER:
            return
        leaves = (source,) if source is not None else ()
        token = self.held(None, "item", path, value, leaves, True, known.has(BOUNDED))
        self.add_to(path, known, container(value if token is None else value.with_tokens((token,))))

    def set_slot(self, path: str, base: Val, value: Val, source: ir.Expr | None, constant: bool) -> None:
        """`record[i] = loss`: a tensor made for the purpose keeps the graph of what its slots are set to."""
        tokens = base.tokens | value.tokens
        if not constant and (base.kind is Kind.DEVICE or base.has(SLOTS)):
            leaves = (source,) if source is not None else ()
            token = self.held(None, "item", path, value, leaves, True, False)
            tokens |= {token} if token is not None else frozenset()
            if (
                self.stmt is not None
                and (hold := self.events.holds.get((id(self.stmt.origin), path))) is not None
            ):
                hold.place.is_slot = True
        self.refill(
            path, Val(Kind.GRAPH, tokens, (value.flags & ~SCALAR) | base.flags & OUTPUT | MAYBE | SLOTS)
        )

    def set_item(self, target: ir.Sub, base: Val, value: Val, source: ir.Expr) -> None:
        """`meter[key] = value` of a class of the project runs its `__setitem__`."""
        method = self.file.method(base.ref, "__setitem__")
        if method is None:
            return
        func = ir.Attr(target.origin, target.base, "__setitem__")
        call = ir.Call(target.origin, func, (target.index, source), ())
        given = Args([self.eval_quietly(target.index), value], {})
        self.function_call(call, Val(Kind.FUNCTION, ref=method), given, base, target.base.path)

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
        total = result if token is None else result.with_tokens((token,))
        self.update(path, total)
        where = target.base.path if isinstance(target, ir.Sub) else None
        table = self.state.vars.get(where) if where is not None and where != path else None
        if where is not None and table is not None and table.kind is Kind.CONTAINER:
            self.add_to(where, table, total)  # who has the table has the sum

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
            self.file.store_global(path, value)


def _with_proven_loss(record: Val) -> Val:
    """A dict that a framework calls backward on: its loss is a tensor with a graph."""
    loss = field(record, "loss")
    if loss is None or loss.kind is not Kind.GRAPH:
        return record
    changed = with_field(record, "loss", loss.without_flags(MAYBE | NAMED | OUTPUT))
    return record if changed is None else changed


def _is_region(index: ir.Expr) -> bool:
    """`x[begin:end, :]`: only a tensor is indexed so, and writing into it copies."""
    return isinstance(index, ir.Seq) and any(isinstance(item, ir.Slice) for item in index.items)


def _optimizes(loop: Loop) -> bool:
    return any(call.method in ("step", "zero_grad") for _, call in ir.calls(loop.stmt.body))
