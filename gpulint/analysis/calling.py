"""Calls into the project's own code, and what is held: the part of the interpreter that talks to summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis import frameworks, gradmode, ir
from gpulint.analysis.arguments import Args
from gpulint.analysis.calls import Calls
from gpulint.analysis.classes import ClassInfo
from gpulint.analysis.evidence import Evidence
from gpulint.analysis.facts import Carried, Forward, FunctionFacts, Hold, HotCall, Keep, Loop, OomHandler
from gpulint.analysis.state import State
from gpulint.analysis.summaries import Events, Summary, retokened, substitute
from gpulint.analysis.values import (
    EVAL,
    MAYBE,
    UNKNOWN,
    UNSURE_GRAD,
    Detached,
    Grad,
    Holder,
    Kind,
    ParamToken,
    Site,
    Tokens,
    Val,
    container,
    detached,
    element,
    held_parts,
    join,
    with_inner,
)

if TYPE_CHECKING:
    from gpulint.analysis.program import FileAnalysis

WATCHED = {
    "torch.cuda.empty_cache": "torch.cuda.empty_cache",
    "torch.cuda.memory.empty_cache": "torch.cuda.empty_cache",
    "torch.mps.empty_cache": "torch.mps.empty_cache",
    "torch.xpu.empty_cache": "torch.xpu.empty_cache",
    "torch.cuda.synchronize": "torch.cuda.synchronize",
    "gc.collect": "gc.collect",
}


class Calling(Calls):
    """Adds calls of the project's functions and classes, holds, and events."""

    def __init__(
        self, file: FileAnalysis, function: ir.Function, evidence: Evidence, state: State, record: bool
    ) -> None:
        super().__init__(file, function, evidence, state)
        self.record = record
        self.summary = Summary(function)
        self.facts = FunctionFacts(function, state.grad)
        self.events = Events()
        self.guards: list[ir.Stmt] = []
        self.exits: list[State] = []
        self.raises: list[State] = []
        self.broken: list[State] = []
        self.jumps: list[dict[str, list[State]]] = []
        self.bare_contexts: list[ir.Stmt] = []
        self.handlers_open = 0
        self.tried: frozenset[str] = frozenset()
        self.started_none: set[str] = set()

    # --- calls ---------------------------------------------------------------------------------------------------

    def function_call(
        self,
        expr: ir.Call,
        callee: Val,
        args: Args,
        owner: Val | None,
        owner_path: str | None,
        forward: bool = False,
    ) -> Val:
        """Apply the summary of one of the project's functions."""
        function: ir.Function = callee.ref
        given = bind_arguments(function, args, owner)
        sources = bind_sources(function, expr, owner is not None)
        home: FileAnalysis = function.home
        if home is self.file:
            home.note_call(function, given, self.state.grad)
        self.file.called_from.setdefault(function, set()).add(self.function)
        if any(loop.over_data for loop in self.loops):
            self.file.called_in_data_loop.add(function)
        summary = home.summary_for(function, self.state.grad)
        if summary is None:
            for value in args.all():
                self.escape(value)
            return UNKNOWN
        if self.loops and not forward:
            loop = self.loops[-1]
            loop.forwards += summary.forwards
            loop.steps += summary.steps
            loop.backwards += summary.direct_backwards
        elif not forward:
            self.summary.forwards += summary.forwards
            self.summary.steps += summary.steps
            self.summary.direct_backwards += summary.direct_backwards
        if not forward:
            self.summary.backwards += summary.backwards
        self.summary.autograd_grad |= summary.autograd_grad
        for name, origin in summary.hot.items():
            if not summary.steps and not summary.direct_backwards and _only_cleans(function):
                self._hot_event(expr, name, origin)
                if not self.loops and not self.guards and not self.handlers_open:
                    self.summary.hot.setdefault(name, origin)
        if summary.yield_grad is not None and gradmode.is_context_manager(function):
            return Val(Kind.CONTEXT, ref=self._yielded(summary.yield_grad))
        result = UNKNOWN if summary.returns is None else substitute(summary.returns, given, function)
        self.state.freed |= frozenset(t for t in summary.freed if not isinstance(t, ParamToken))
        if not forward:
            self.carried(
                expr,
                args,
                frozenset(
                    s for s in result.sites if s.function not in (self.function, None) and _makes(summary, s)
                ),
            )
            result = self._made_here(expr, summary, result, given, owner_path)
        for name in summary.frees:
            if name in given:
                self.free(given[name], False)
        for name in summary.escaped_params:
            if name in given:
                self.escape(given[name])
        self._forget_stores(summary, owner_path)
        for keep in summary.keeps:
            located = keep if home is self.file or keep.filename else home.located(keep)
            self._keep(expr, located, given, sources, owner_path)
        return self._under_grad(result)

    def _yielded(self, mode: Grad) -> Grad:
        return mode if mode is not Grad.ENABLED else self.state.grad

    def _made_here(
        self, expr: ir.Call, summary: Summary, result: Val, given: dict[str, Val], owner_path: str | None
    ) -> Val:
        """Give the graphs that the callee made a token of this call: another call of it makes other graphs."""
        made = summary.returns.sites if summary.returns is not None else frozenset()
        made = frozenset(site for site in made if site.function is not None)
        if not made or self.state.grad is Grad.DISABLED:
            return result
        what = "forward" if any(site.what == "forward" for site in made) else "loss"
        here = self.site(expr, what, expr.func.path)
        here.inner = made
        here.known = all(site.known for site in made)
        self.state.fresh(here)
        if made <= self.state.freed:
            self.state.freed |= {here}
            self.file.freed |= {here}
            self.file.freed_by.setdefault(here, set()).update(
                *(self.file.freed_by.get(s, set()) for s in made)
            )
        if self._evaluates(summary, given, owner_path):
            self.file.evaluating.add(here)
            self._helper_forward(expr, here)
        return retokened(result, made, here)

    def _evaluates(self, summary: Summary, given: dict[str, Val], owner_path: str | None) -> bool:
        """Whether the modules that the callee runs are in eval mode at this call."""
        for path in summary.forward_paths:
            root, _, attr = path.partition(".")
            if root == "self" and attr and owner_path is not None:
                known = self.state.vars.get(f"{owner_path}.{attr}")
            else:
                known = given.get(path)
            if known is not None and known.has(EVAL):
                return True
        return False

    def _helper_forward(self, expr: ir.Call, site: Site) -> None:
        if self.record and self.stmt is not None:
            self.events.forwards[id(expr.node)] = Forward(
                self.function, self.stmt, expr, expr.func.path or "", site, self.state.grad, True, tuple(self.loops),
                True, guarded=bool(self.guards),
            )  # fmt: skip

    def _forget_stores(self, summary: Summary, owner_path: str | None) -> None:
        if owner_path is not None:
            for attr in summary.stores:
                self.state.drop(f"{owner_path}.{attr}")

    def _under_grad(self, value: Val) -> Val:
        if self.state.grad is Grad.DISABLED:
            return detached(value) if value.kind in (Kind.GRAPH, Kind.CONTAINER) else value
        if self.state.grad is Grad.UNKNOWN and value.kind is Kind.GRAPH:
            return value.with_flags(UNSURE_GRAD)
        return value

    def _keep(
        self,
        expr: ir.Call,
        keep: Keep,
        given: dict[str, Val],
        sources: dict[str, ir.Expr],
        owner_path: str | None,
    ) -> None:
        value = given.get(keep.param)
        if value is None:
            return
        if keep.into == "self":
            if owner_path is None:
                return
            path = f"{owner_path}.{keep.holder}"
        elif keep.into == "global":
            path = keep.holder
        else:
            source = sources.get(keep.into)
            if source is None or source.path is None:
                return
            path = source.path
        leaf = sources.get(keep.param)
        container_kept = keep.how != "add"
        if keep.detached:
            value = detached(value)
        self.held(
            expr, "call", path, value, (leaf,) if leaf is not None else (), container_kept, keep.bounded, keep
        )

    def construct(self, expr: ir.Call, callee: Val, args: Args) -> Val:
        """Make an instance; a module's class gives a module."""
        info = callee.ref
        init = info.method("__init__")
        if init is not None:
            given = bind_arguments(init, args, Val(Kind.INSTANCE, ref=info))
            if init.home is self.file:
                self.file.note_call(init, given, self.state.grad)
            init.home.summary(init)
        if self.loops and info.is_module:
            self.loops[-1].builds_model = True
        if info.is_module:
            return Val(Kind.MODULE, flags=info.module_flags, ref=info)
        if info.is_dataclass or info.is_tuple:
            return container(items=tuple(args.all())) if args.any_graph() else Val(Kind.INSTANCE, ref=info)
        for value in args.all():
            self.escape(value)
        return Val(Kind.INSTANCE, ref=info)

    def carried(self, expr: ir.Call, args: Args, sites: Tokens) -> None:
        """Note arguments that descend from this same call's result in the iteration, or the call, before."""
        if not self.record or self.stmt is None or not sites:
            return
        for argument, value in _places(expr, args, self):
            path = argument.path
            if path is None or not value.tokens & sites:
                continue
            if value.kind not in (Kind.GRAPH, Kind.CONTAINER, Kind.UNKNOWN) or path in self.evidence.records:
                continue
            loop = self.loops[-1] if self.loops else None
            born = self.state.born_at(path)
            if loop is not None and (
                path not in loop.assigned or (born is not None and born >= len(self.loops))
            ):
                continue  # not bound in this loop, or bound afresh in this very iteration
            if loop is None and not (self.self_name and path.startswith(f"{self.self_name}.")):
                continue
            nested = value.kind is Kind.CONTAINER or value.has(MAYBE)
            event = Carried(
                self.function, self.stmt, expr, path, argument, loop, nested=nested, sites=value.sites & sites
            )
            event.starts_none = path in self.started_none
            self.events.carried[id(argument.node)] = event

    # --- holds ---------------------------------------------------------------------------------------------------

    def default_born(self, path: str) -> int:
        """How old a place is of which nothing was seen: attributes and globals are older than the function."""
        root = path.partition(".")[0].partition("[")[0]
        if root in self.evidence.declared or root not in self.evidence.assigned:
            return -1
        return len(self.loops)

    def held(
        self,
        expr: ir.Call | None,
        how: str,
        path: str,
        value: Val,
        leaves: tuple[ir.Expr, ...],
        in_container: bool,
        bounded: bool,
        keep: Keep | None = None,
    ) -> Holder | None:
        """Something is kept under `path`. Gives the holder token where it outlives the iteration."""
        parts = held_parts(value)
        if not parts:
            return None
        born = self.state.born_at(path)
        if born is None:
            born = self.default_born(path)
        self._note_keep(path, parts, how, bounded or self._resets_whole(path), keep)
        loops = tuple(self.loops[max(born, 0) :])
        if born >= 0 and not loops:
            return None
        if born < 0 and not loops and (self.function.name in ("<module>", "__init__", "setup", "reset")):
            return None
        part = _strongest(parts)
        if part is None or (part.kind is Kind.DEVICE and not in_container):
            return None
        holder = self.file.holder(self, path)
        if self.record and self.stmt is not None:
            node = expr.node if expr is not None else self.stmt.node
            root = path.partition(".")[0].partition("[")[0]
            hold = Hold(
                self.function, self.stmt, node, how, path, self._holder_kind(path, born), in_container,
                self._tensor_leaves(leaves, part.kind), part, loops,
                bounded or self._resets(path, root, loops), self.state.grad,
                any(site in self.file.evaluating for site in part.sites), keep=keep, holder_tokens=frozenset({holder}),
            )  # fmt: skip
            hold.birth_loop = self.loops[born - 1] if 0 < born <= len(self.loops) else None
            hold.guarded = bool(self.guards)
            hold.given = leaves[0] if leaves else None
            hold.fresh_view = self._is_fresh_view(leaves)
            hold.over_data = any(loop.over_data for loop in loops)
            outside = len(self.loops) - len(loops)
            hold.made_inside = not loops or any(site.depth > outside or site.depth < 0 for site in part.sites)
            if how == "item" and self._is_overwritten_slot(loops):
                hold.bounded = True
            self.events.holds[(id(node), path)] = hold
        return holder

    def _tensor_leaves(self, leaves: tuple[ir.Expr, ...], kind: Kind) -> tuple[ir.Expr, ...]:
        """The innermost expressions, through displays and sums, whose values are what is held."""
        found: list[ir.Expr] = []
        stack = list(reversed(leaves))
        while stack:
            leaf = stack.pop()
            if isinstance(leaf, ir.Seq):
                stack.extend(reversed(leaf.items))
            elif isinstance(leaf, ir.DictDisplay):
                stack.extend(value for _, value in reversed(leaf.pairs))
            elif isinstance(leaf, ir.Op) and leaf.op in ("+", "-", "*", "/", "neg"):
                stack.extend(reversed(leaf.operands))
            elif self.eval_quietly(leaf).kind is kind:
                found.append(leaf)
        return tuple(found)

    def _is_fresh_view(self, leaves: tuple[ir.Expr, ...]) -> bool:
        """`out[0]` of an `out` made in this iteration: the slice keeps the whole of it."""
        for leaf in leaves:
            if isinstance(leaf, ir.Sub) and isinstance(leaf.base, ir.Name):
                return self.state.born.get(leaf.base.id, -1) >= len(self.loops)
        return False

    def _is_overwritten_slot(self, loops: tuple[Loop, ...]) -> bool:
        """`last[i] = loss` with `i` of an inner loop: the outer loop's next round overwrites what it holds."""
        if len(loops) < 2 or not any(loop.over_data for loop in loops[:-1]):
            return False
        stmt = self.stmt
        if not isinstance(stmt, ir.Assign) or not isinstance(stmt.targets[0], ir.Sub):
            return False
        index, inner = stmt.targets[0].index, loops[-1].stmt
        if not isinstance(index, ir.Name) or not isinstance(inner, ir.For):
            return False
        iterable, target = inner.iterable, inner.target
        if isinstance(iterable, ir.Call) and iterable.method == "enumerate" and isinstance(target, ir.Seq):
            target = target.items[0]
        elif not (isinstance(iterable, ir.Call) and iterable.method == "range"):
            return False
        return isinstance(target, ir.Name) and target.id == index.id

    def _holder_kind(self, path: str, born: int) -> str:
        if "." in path:
            return "attribute"
        if born < 0 and self.function.name != "<module>":
            return "global"
        return "variable"

    def _resets(self, path: str, root: str, loops: tuple[Loop, ...]) -> bool:
        """Whether the innermost loop starts the holder afresh now and then: then it holds a window."""
        cleared = loops[-1].resets if loops else self.file.resets_of(self.function)
        if path in cleared or (root in cleared and root != self.self_name):
            return True
        head = path.rpartition(".")[0]
        return bool(head) and head != self.self_name and head in cleared

    def _resets_whole(self, path: str) -> bool:
        return not self.loops and path in self.file.resets_of(self.function)

    def _note_keep(self, path: str, parts: list[Val], how: str, bounded: bool, via: Keep | None) -> None:
        """A parameter that ends up in something older than this call is a keep of this function's summary."""
        into, holder = self._keeper(path)
        if into is None:
            return
        for part in parts:
            for given in part.tokens:
                token = given.param if isinstance(given, Detached) else given
                if isinstance(token, ParamToken) and token.function is self.function and token.name != into:
                    cut = token is not given
                    if (part.kind is Kind.DEVICE) != cut or any(
                        k.param == token.name and k.holder == holder and k.detached == cut
                        for k in self.summary.keeps
                    ):
                        continue
                    stmt = via.stmt if via is not None else self.stmt
                    origin = via.function if via is not None else self.function
                    if stmt is not None:
                        how_kept = via.how if via is not None else how
                        place = (via.filename, via.row) if via is not None else (None, 1)
                        self.summary.keeps.append(
                            Keep(origin, token.name, holder, into, how_kept, stmt, bounded, *place, cut)
                        )

    def _keeper(self, path: str) -> tuple[str | None, str]:
        root, _, rest = path.partition(".")
        if root == self.self_name and rest:
            return "self", rest
        plain = root.partition("[")[0]
        if any(param.name == plain for param in self.function.params):
            return plain, path
        if plain in self.evidence.declared or (
            plain not in self.evidence.assigned and self.function.name != "<module>"
        ):
            return "global", path
        return None, path

    def settle(self, loop: Loop | None) -> None:
        """The iteration (or the function) ends: decide for what it held whether the graph is freed by now."""
        for hold in self.events.holds.values():
            if hold.state not in ("unknown", "live") or (
                loop not in hold.loops if loop is not None else hold.loops
            ):
                continue
            if hold.value.kind is Kind.DEVICE:
                hold.state = "device"
                continue
            if hold.value.kind is not Kind.GRAPH:
                continue
            sites = hold.value.sites
            freed = sites & self.state.freed
            if freed and sites & self.state.retained:
                hold.state = "retained"
            elif freed:
                hold.state = "freed"
            else:
                hold.state = "live"

    # --- what leaves the function --------------------------------------------------------------------------------

    def returned(self, value: Val) -> None:
        known = self.summary.returns
        self.summary.returns = value if known is None else self.either(known, value)
        if self.record:
            self.file.returned |= value.tokens

    def either(self, known: Val, value: Val) -> Val:
        """What comes back where one `return` gives a graph and another something unseen: a graph, unless an argument
        decides which of them is taken."""
        unseen = {known.kind, value.kind} == {Kind.GRAPH, Kind.UNKNOWN}
        if not unseen or self.asks_argument():
            return join(known, value)
        graph = known if known.kind is Kind.GRAPH else value
        return graph.with_tokens(known.tokens | value.tokens)

    def asks_argument(self) -> bool:
        """Whether any `if` with a `return` in it tests a parameter of this function."""
        names = {param.name for param in self.function.params if param.name != self.self_name}
        for statement in ir.statements(self.function.body):
            if not isinstance(statement, ir.If):
                continue
            if any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(statement.test)):
                if any(
                    isinstance(inner, ir.Return)
                    for inner in ir.statements([*statement.body, *statement.orelse])
                ):
                    return True
        return False

    def escape(self, value: Val) -> None:
        super().escape(value)
        for token in value.tokens:
            if isinstance(token, ParamToken) and token.function is self.function:
                self.summary.escaped_params.add(token.name)

    def store_attribute(self, path: str, value: Val) -> None:
        root, _, rest = path.partition(".")
        if not rest or "[" in rest:
            rest = rest.partition("[")[0]
        if not rest or "." in rest:
            return
        if root == self.self_name and self.cls is not None:
            self.summary.stores.add(rest)
            self.cls.store(rest, value)
        else:
            owner = self.state.vars.get(root)
            if owner is not None and isinstance(owner.ref, ClassInfo):
                owner.ref.store(rest, value)
        if self.record:
            self.file.stored |= value.tokens

    # --- events --------------------------------------------------------------------------------------------------

    def hot_call(self, expr: ir.Call, qualified: str) -> None:
        name = WATCHED.get(qualified)
        if name is None:
            return
        if not self.loops and not self.guards and not self.handlers_open:
            self.summary.hot.setdefault(name, self.function)
        self._hot_event(expr, name, None)

    def _hot_event(self, expr: ir.Call, name: str, via: ir.Function | None) -> None:
        if self.record and self.stmt is not None:
            self.events.hot_calls[id(expr.node), name] = HotCall(
                self.function,
                self.stmt,
                expr,
                name,
                tuple(self.loops),
                bool(self.guards),
                self.handlers_open > 0,
                via,
            )

    def oom_event(self, statement: ir.Try, handler: ir.Handler, found: tuple[ir.Stmt, str]) -> None:
        recovery, why = found
        self.events.handlers[id(handler.node)] = OomHandler(
            self.function, statement, handler, recovery, why, tuple(self.loops)
        )

    def recovers(self, call: ir.Call) -> str | None:
        """What a call in an OOM handler does to recover, or None."""
        qualified = self.qualified(call.func.path)
        if qualified is not None and WATCHED.get(qualified, "").endswith(("empty_cache", "collect")):
            return "empty_cache" if qualified.endswith("empty_cache") else "gc.collect"
        if call.method == "backward":
            return "backward"
        if call.func.path is not None and call.func.path in self.tried and call.args:
            return "retry"
        callee = self.eval_quietly(call.func)
        if callee.kind is Kind.MODULE and isinstance(call.func, (ir.Name, ir.Attr)) and not callee.has(MAYBE):
            return "forward"
        if callee.kind is Kind.FUNCTION:
            if callee.ref is self.function:
                return "retry"
            summary = callee.ref.home.summary(callee.ref)
            if summary is not None and (summary.forwards or summary.backwards):
                return "retry"
        return None

    def eval_quietly(self, expr: ir.Expr) -> Val:
        record, self.record = self.record, False
        state = self.state
        self.state = state.copy()
        value = self.eval(expr)
        self.state, self.record = state, record
        return value

    def context_mode(self, expr: ir.Expr, value: Val) -> Grad | None:
        """The grad mode under a context manager that is not torch's own; None where it changes nothing."""
        if value.kind is Kind.INSTANCE:
            mode = self.file.enter_mode(value.ref)
            return mode
        if isinstance(expr, ir.Call) and self.qualified(expr.func.path) in frameworks.NEUTRAL_CALLS:
            return None
        return Grad.UNKNOWN


def _only_cleans(function: ir.Function) -> bool:
    """Whether a helper is there for the clean-up: short, and without a loop of its own."""
    found = list(ir.statements(function.body))
    return len(found) <= 12 and not any(isinstance(statement, (ir.For, ir.While)) for statement in found)


def _makes(summary: Summary, site: Site) -> bool:
    """Whether a function's result has the site of itself, and not because it was handed in."""
    return summary.returns is not None and site in with_inner(summary.returns.tokens)


def bind_arguments(function: ir.Function, args: Args, owner: Val | None) -> dict[str, Val]:
    """Arguments by the name of the parameter they go to; `owner` is the method's self."""
    positional = list(args.positional)
    if owner is not None and not is_static(function):
        positional.insert(0, owner)
    given: dict[str, Val] = {}
    names = [param.name for param in function.params if param.kind == "normal"]
    for name, value in zip(names, positional, strict=False):
        given[name] = value
    rest = positional[len(names) :]
    for param in function.params:
        if param.kind == "star" and rest:
            given[param.name] = container(items=tuple(rest))
    known = {param.name for param in function.params}
    extra: dict[str, Val] = {}
    for name, value in args.keywords.items():
        if name in known:
            given[name] = value
        else:
            extra[name] = element(value) if name.startswith("**") else value
    for param in function.params:
        if param.kind == "doublestar" and extra:
            given[param.name] = container(items=tuple(extra.values()), keys=tuple(extra))
    return given


def bind_sources(function: ir.Function, call: ir.Call, is_method: bool) -> dict[str, ir.Expr]:
    """The argument expressions by parameter name."""
    names = [param.name for param in function.params if param.kind == "normal"]
    if is_method and not is_static(function):
        names = names[1:]
    sources = dict(zip(names, call.args, strict=False))
    for name, value in call.keywords:
        if name is not None:
            sources[name] = value
    return sources


def _places(expr: ir.Call, args: Args, run: Calling) -> list[tuple[ir.Expr, Val]]:
    """The places given to a call, taken out of tuples and stars: `h` and `c` in `lstm(x, (h, c))`."""
    found: list[tuple[ir.Expr, Val]] = []
    stack: list[tuple[ir.Expr, Val]] = [*zip(expr.args, args.positional, strict=False)]
    stack += [(item, value) for (_, item), value in zip(expr.keywords, args.keywords.values(), strict=False)]
    while stack:
        place, value = stack.pop()
        if isinstance(place, ir.Wrapper):
            place = place.value
        if isinstance(place, ir.Seq):
            stack += [(item, run.eval_quietly(item)) for item in place.items]
        else:
            found.append((place, value))
    return found


def is_static(function: ir.Function) -> bool:
    return any(isinstance(item, ir.Name) and item.id == "staticmethod" for item in function.decorators)


def _strongest(parts: list[Val]) -> Val | None:
    graphs = [part for part in parts if part.kind is Kind.GRAPH]
    for part in graphs:
        if not part.has(MAYBE):
            return part
    if graphs:
        return graphs[0]
    devices = [part for part in parts if part.kind is Kind.DEVICE]
    return devices[0] if devices else None
