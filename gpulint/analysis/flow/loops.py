"""Loops: a pass to learn what comes round the back edge, one that records; what a loop iterates over."""

from __future__ import annotations

import re

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import Loop
from gpulint.analysis.file.frozen_classes import switched_by_loop
from gpulint.analysis.flow.binding import Binding
from gpulint.analysis.flow.items import takes_items
from gpulint.analysis.flow.peaks import loop_names
from gpulint.analysis.values.arguments import Args
from gpulint.analysis.values.state import State, merge
from gpulint.analysis.values.values import (
    LOADER,
    Grad,
    Kind,
    Val,
)

_DEEP = 3  # loops nested deeper than this are followed once: their fixpoint is that of the outer passes


class Loops(Binding):
    """Follows `for`, `while` and comprehensions."""

    def for_(self, statement: ir.For) -> None:
        over_loader = self.iterates_loader(statement.iterable)
        self.loop(statement, over_loader)
        if (switched := switched_by_loop(statement)) is not None:
            self.require(*switched)

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
        if any(
            call.method == "next" and isinstance(call.func, ir.Name) for _, call in ir.calls(statement.body)
        ):
            return True
        iterable = statement.iterable
        if self.is_display(iterable):
            return False
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
            chunked = any(
                isinstance(part, ir.Op) and part.op == "//" for arg in iterable.args for part in ir.walk(arg)
            )
            if self.cuts_one_tensor(iterable, statement):
                return False
            return len(iterable.args) == 3 or chunked or _slices_by(statement)
        if isinstance(iterable, (ir.Seq, ir.DictDisplay, ir.Const)):
            return False
        if isinstance(iterable, ir.Comp):  # `[xs[i : i + n] for i in range(0, len(xs), n)]`
            inner = iterable.clauses[0][1]
            return isinstance(inner, ir.Call) and inner.method == "range" and len(inner.args) == 3
        if isinstance(iterable, ir.Name) and self.is_sequence(iterable.id):
            return False
        record, self.record = self.record, False
        value = self.eval(iterable)
        self.record = record
        if value.kind in (Kind.MODULE, Kind.HOST, Kind.NUMBER, Kind.GRAPH, Kind.DEVICE) or value.sites:
            return False
        if (
            value.kind is Kind.CONTAINER
            and value.elem is not None
            and value.elem.kind in (Kind.HOST, Kind.MODULE, Kind.GRAPH)
        ):
            return False
        return value.kind is Kind.LOADER or _reads_batches(statement, iterable)

    def is_display(self, iterable: ir.Expr) -> bool:
        """Whether all rounds stand in the text: a name bound to `[a, b]`, or one such among what is zipped."""
        while isinstance(iterable, ir.Call) and iterable.method in ("enumerate", "tqdm", "reversed"):
            if not iterable.args:
                return False
            iterable = iterable.args[0]
        if isinstance(iterable, ir.Call) and iterable.method == "zip":
            return any(self.is_display(arg) for arg in iterable.args)
        if isinstance(iterable, ir.Seq):
            return True
        value = self.state.vars.get(iterable.path) if iterable.path is not None else None
        return value is not None and value.kind is Kind.CONTAINER and bool(value.items)

    def cuts_one_tensor(self, counts: ir.Call, statement: ir.For) -> bool:
        """`for start in range(0, x.size(1), n)` of a tensor that is there as a whole: its parts are no batches."""
        for arg in counts.args:
            for part in ir.walk(arg):
                owner = part.func if isinstance(part, ir.Call) else part
                if not isinstance(owner, ir.Attr) or owner.attr not in ("size", "shape"):
                    continue
                path = owner.base.path
                known = self.state.vars.get(path) if path is not None else None
                whole = known is not None and (known.is_tensor or self.is_tensor_parameter(path))
                if whole and not _moves_parts(statement, path):
                    return True
        return False

    def is_tensor_parameter(self, path: str | None) -> bool:
        """Whether a name is a parameter that its annotation says is a tensor."""
        return any(
            param.name == path
            and param.annotation is not None
            and (param.annotation.path or "").endswith("Tensor")
            for param in self.function.params
        )

    def is_sequence(self, name: str) -> bool:
        """A parameter of which `xs[0]` is taken: the parts of one batch, not all batches."""
        return name in self.evidence.indexed and any(param.name == name for param in self.function.params)

    def loop(self, statement: ir.For | ir.While, over_loader: bool) -> None:
        """Two passes to learn what comes round the back edge, one more that records."""
        record = self.record
        loop = self.file.loop(statement, self.function, self.loops[-1] if self.loops else None)
        loop.over_loader |= over_loader
        loop.over_data = loop.over_loader or self.iterates_data(statement)
        loop.over_pairs = loop.over_data and not loop.over_loader and _only_pairs(statement)
        loop.written_out = isinstance(statement, ir.For) and self.is_display(statement.iterable)
        if record and not loop.over_data and self.file.uses_torch:
            loop.over_items = not loop.written_out and takes_items(self.file, self.function, statement)
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

    def enter_comprehension(self, expr: ir.Comp) -> None:
        target, iterable, _ = expr.clauses[0]
        loop = self.file.comprehension_loop(
            expr, target, iterable, self.function, self.loops[-1] if self.loops else None
        )
        loop.over_data = self.iterates_data(loop.stmt)
        loop.over_pairs = loop.over_data and _only_pairs(loop.stmt)
        if self.record and not loop.over_data and self.file.uses_torch and not self.is_display(iterable):
            loop.over_items = takes_items(self.file, self.function, loop.stmt)
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

    def joined(self, expr: ir.Call, args: Args) -> None:
        """`torch.cat([model(x) for x in loader])` under no_grad: all batches stay on the device until they are one tensor."""
        source = _comprehension_in(expr)
        elem = args.positional[0].elem if source is not None else None
        if elem is None or elem.kind is not Kind.DEVICE or not self.record or self.stmt is None:
            return
        loop = self.file.loops[id(source)]
        outer = [around for around in self.loops if around.over_data]
        self.loops.append(loop)
        self.list_held(expr, elem, source.elements[-1], outer[-1] if outer else None)  # type: ignore[union-attr]
        self.settle(loop)
        self.loops.pop()


def _comprehension_in(call: ir.Call) -> ir.Comp | None:
    """The list comprehension that is joined, or the generator in `torch.cat(list(...))`."""
    part = call.args[0] if call.args else None
    while isinstance(part, ir.Call) and part.method in ("list", "tuple") and isinstance(part.func, ir.Name):
        part = part.args[0] if part.args else None
    return part if isinstance(part, ir.Comp) and len(part.clauses) == 1 else None


def _moves_parts(loop: ir.For, path: str | None) -> bool:
    """`x[a:b].cuda()`: the whole of x is elsewhere."""
    return any(
        call.method in ("cuda", "to")
        and isinstance(call.func, ir.Attr)
        and isinstance(call.func.base, ir.Sub)
        and call.func.base.base.path == path
        for _, call in ir.calls(loop.body)
    )


# Words of the names that programs give to what yields their batches: a role, like that of a model.
_BATCHES = re.compile(
    r"(?i)load|batches|batch_?size|minibatch|data|stream|sampler|episode|iterator|(?:^|[._])(?:dl|it|iter|train|valid|val|test|eval|dev)(?:_|$)"
)


def _reads_batches(loop: ir.For, iterable: ir.Expr) -> bool:
    """Whether something besides the loop itself says that it runs through batches: what the iterable is called, or that
    its items come in tuples, or go to the device. Layers, crops, adapters and hypotheses do none of it."""
    return _is_named_for_batches(iterable) or _gives_tuples(loop) or _moves_items(loop, iterable)


def _is_named_for_batches(iterable: ir.Expr) -> bool:
    for part in ir.walk(iterable):
        name = part.attr if isinstance(part, ir.Attr) else part.id if isinstance(part, ir.Name) else ""
        if _BATCHES.search(name):
            return True
    return False


def _gives_tuples(loop: ir.For) -> bool:
    target, named = loop.target, loop.iterable.method if isinstance(loop.iterable, ir.Call) else ""
    if named == "enumerate" and isinstance(target, ir.Seq):
        target = target.items[-1]
    return isinstance(target, ir.Seq) and len(target.items) > 1 and named != "items"


def _moves_items(loop: ir.For, iterable: ir.Expr) -> bool:
    if isinstance(iterable, ir.Attr):
        return False  # what an object keeps is moved to the device for other reasons too: a few seeds, a few settings
    names = loop_names(loop)
    return any(
        isinstance(call.func, ir.Attr) and call.method in ("to", "cuda") and _root(call.func.base) in names
        for _, call in ir.calls(loop.body)
    )


def _only_pairs(loop: ir.For | ir.While) -> bool:
    """Whether tuples are all that a loop shows of its being over batches: it may as well run through a few sizes."""
    if isinstance(loop, ir.While) or not _gives_tuples(loop) or _is_named_for_batches(loop.iterable):
        return False
    counted = isinstance(loop.iterable, ir.Call) and loop.iterable.method in ("range", "trange")
    drawn = any(call.method == "next" for _, call in ir.calls(loop.body))
    return not counted and not drawn and not _moves_items(loop, loop.iterable)


def _root(expr: ir.Expr) -> str:
    """`batch` of `batch["x"].y`; nothing for what a call gives."""
    while isinstance(expr, (ir.Attr, ir.Sub)):
        expr = expr.base
    return expr.id if isinstance(expr, ir.Name) else ""


def _slices_by(loop: ir.For) -> bool:
    """`x[i * n : (i + 1) * n]`, `x[begin:end]` with both made from the loop's index: the loop runs through chunks."""
    names = loop_names(loop)
    for statement in ir.statements(loop.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Sub) and isinstance(part.index, ir.Slice) and len(part.index.parts) == 2:
                if all(
                    any(isinstance(p, ir.Name) and p.id in names for p in ir.walk(end))
                    for end in part.index.parts
                ):
                    return True
    return False


def _dead(state: State) -> State:
    copy = state.copy()
    copy.alive = False
    return copy


def _always(test: ir.Expr) -> bool:
    return isinstance(test, ir.Const) and bool(test.value)
