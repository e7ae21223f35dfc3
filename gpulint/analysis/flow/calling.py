"""Calls into the project's own code, and what is held: the part of the interpreter that talks to summaries."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.oom import Recovery
from gpulint.analysis.file import gradmode
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.entry import note_handed
from gpulint.analysis.file.facts import (
    Carried,
    Forward,
    ForwardMode,
    ForwardModule,
    ForwardResult,
    Keep,
    OomHandler,
)
from gpulint.analysis.file.frozen_classes import is_made_frozen
from gpulint.analysis.file.slots import has_one_key
from gpulint.analysis.file.summaries import Summary, retokened, substitute
from gpulint.analysis.flow.dispatching import stored_without_grad
from gpulint.analysis.flow.keeping import Keeping
from gpulint.analysis.flow.refollow import Follower, with_given
from gpulint.analysis.values.arguments import Args, bind_arguments, bind_sources
from gpulint.analysis.values.constants import NO_CONSTANTS, Constants, given_constants
from gpulint.analysis.values.state import State
from gpulint.analysis.values.values import (
    EVAL,
    FROZEN,
    MAYBE,
    UNKNOWN,
    UNSURE_GRAD,
    Grad,
    Kind,
    ParamToken,
    Site,
    Tokens,
    Val,
    container,
    detached,
    join,
    with_inner,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_EMPTIES = frozenset(f"torch.{one}.empty_cache" for one in ("cuda", "cuda.memory", "mps", "xpu"))


class Calling(Keeping):
    """Adds calls of the project's functions and classes, and events."""

    def anew(self, function: ir.Function, grad: Grad) -> Follower:
        """Begin to follow another function."""
        home: FileAnalysis = function.home
        return type(self)(home, function, home.evidence[function], State(grad), False)

    @abstractmethod
    def run(self) -> State:
        """Follow the function to its end."""

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
        note_handed(args.all(), self.state.grad, (function,))
        self.file.called_from.setdefault(function, set()).add(self.function)
        if any(loop.over_data for loop in self.loops):
            self.file.called_in_data_loop.add(function)
        constants: Constants = NO_CONSTANTS
        if home.may_switch_grad(function) or home.flags_choose_result(function):
            assigned = home.evidence[function].assigned
            constants = {
                **given_constants(function, expr, owner is not None, self.constants, assigned),
                **(
                    self._modes(function, given, owner_path)
                    if "training" in home.evidence[function].words
                    else {}
                ),
            }
        summary = home.summary_for(function, self.state.grad, constants)
        if summary is None:
            for value in args.all():
                self.escape(value)
            return UNKNOWN
        self.summary.runs |= summary.runs
        if self.loops and not forward:
            loop = self.loops[-1]
            loop.runs |= summary.runs
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
        if summary.yield_grad is not None and gradmode.is_context_manager(function):
            return Val(Kind.CONTEXT, ref=self._yielded(summary.yield_grad))
        result = UNKNOWN if summary.returns is None else substitute(summary.returns, given, function)
        if (
            self.state.grad is Grad.DISABLED
            and (known := with_given(function, summary, given, self.anew)) is not None
        ):
            result = known
        asked = summary.grad_in_training
        frozen = (
            owner is not None and owner.kind is Kind.MODULE and owner.has(FROZEN) and not args.any_graph()
        )
        recorded = not (frozen or (asked and self._is_evaluating(asked, given, owner_path)))
        if not recorded:
            result = detached(result)
        self.state.freed |= frozenset(t for t in summary.freed if not isinstance(t, ParamToken))
        if not forward:
            self.carried(
                expr,
                args,
                frozenset(
                    s for s in result.sites if s.function not in (self.function, None) and _makes(summary, s)
                ),
            )
            if recorded:
                result = self._made_here(expr, summary, result, given, owner, owner_path)
        for name in summary.frees:
            if name in given:
                self.free(given[name], False)
        for name in summary.escaped_params:
            if name in given:
                self.escape(given[name])
        for name in summary.settled:
            if (source := sources.get(name)) is not None and source.path is not None:
                self.settled(source)
        self._forget_stores(summary, owner_path)
        if owner is not None and owner_path == self.self_name and isinstance(owner.ref, ClassInfo):
            for attr in stored_without_grad(owner.ref, function):
                self.state.assign(f"{owner_path}.{attr}", Val(Kind.DEVICE, flags=MAYBE), -1)
        for keep in summary.keeps:
            located = keep if home is self.file or keep.filename else home.located(keep)
            self._keep(expr, located, given, sources, owner_path)
        return self._under_grad(result)

    def _modes(self, function: ir.Function, given: dict[str, Val], owner_path: str | None) -> dict[str, bool]:
        """What `net.training` comes to in a callee, for the networks that it is given in eval mode, or finds so in its object."""
        known = dict(given)
        if owner_path is not None and function.params:
            for path, value in self.state.vars.items():
                if path.startswith(f"{owner_path}."):
                    known[f"{function.params[0].name}.{path.removeprefix(f'{owner_path}.')}"] = value
        settled = (name for name, value in known.items() if value.kind is Kind.MODULE and value.has(EVAL))
        return {f"{name}.training": False for name in settled}

    def _yielded(self, mode: Grad) -> Grad:
        return mode if mode is not Grad.ENABLED else self.state.grad

    def _made_here(
        self,
        expr: ir.Call,
        summary: Summary,
        result: Val,
        given: dict[str, Val],
        owner: Val | None,
        owner_path: str | None,
    ) -> Val:
        """Give the graphs that the callee made a token of this call: another call of it makes other graphs."""
        made = summary.returns.sites if summary.returns is not None else frozenset()
        made = frozenset(site for site in made if site.function is not None)
        if not made or self.state.grad is Grad.DISABLED:
            return result
        what = "forward" if any(site.what == "forward" for site in made) else "loss"
        here = self.site(expr, what, expr.func.path)
        here.inner = made
        if self.record:
            for site in made:
                self.file.results_of_calls.setdefault(site, set()).add(here)
        self.state.fresh(here)
        if made <= self.state.freed:
            self.state.freed |= {here}
            self.file.freed |= {here}
            self.file.freed_by.setdefault(here, set()).update(
                *(self.file.freed_by.get(s, set()) for s in made)
            )
        if self._evaluates(summary, given, owner_path) or (what == "forward" and _is_settled(owner)):
            self.file.evaluating.add(here)
            self._helper_forward(expr, here)
        return retokened(result, made, here)

    def _evaluates(self, summary: Summary, given: dict[str, Val], owner_path: str | None) -> bool:
        """Whether the modules that the callee runs are in eval mode at this call."""
        return any(self._is_evaluating(path, given, owner_path) for path in summary.forward_paths)

    def _is_evaluating(self, path: str, given: dict[str, Val], owner_path: str | None) -> bool:
        """Whether what the callee knows as `self.net`, or as a parameter, is in eval mode at this call."""
        root, _, attr = path.partition(".")
        if root == "self" and attr and owner_path is not None:
            known = self.state.vars.get(f"{owner_path}.{attr}")
        else:
            known = given.get(path)
        return known is not None and known.has(EVAL)

    def _helper_forward(self, expr: ir.Call, site: Site) -> None:
        if self.record and self.stmt is not None:
            self.events.forwards[id(expr.origin)] = Forward(
                self.function, self.stmt, expr, site, tuple(self.loops),
                ForwardMode(self.state.grad, True, guarded=bool(self.guards)), ForwardResult(),
                ForwardModule(expr.func.path or "", True),
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
        if value is None or (keep.of_collections is False and value.kind is Kind.CONTAINER):
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
        if keep.detached or (not container_kept and self.state.grad is Grad.DISABLED):
            value = detached(value)
        bounded = keep.bounded or has_one_key(keep, sources)
        self.held(
            expr, "call", path, value, (leaf,) if leaf is not None else (), container_kept, bounded, keep
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
            frozen = FROZEN if is_made_frozen(info, expr) and not self.file.thaws else 0
            return self.file.instance_of(info, expr).with_flags(frozen)
        if info.is_dataclass or info.is_tuple:
            return container(items=tuple(args.all())) if args.any_graph() else Val(Kind.INSTANCE, ref=info)
        note_handed(args.all(), self.state.grad, info.cls.methods.values())
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
            self.events.carried[id(argument.origin)] = Carried(path, loop)

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

    def oom_event(self, statement: ir.Try, handler: ir.Handler, found: Recovery) -> None:
        self.events.handlers[id(handler.origin)] = OomHandler(
            statement, handler, found.stmt, found.why, found.needs_memory
        )

    def recovers(self, call: ir.Call) -> str | None:
        """What a call in an OOM handler does to recover, or None."""
        qualified = self.qualified(call.func.path)
        if qualified in _EMPTIES:
            return "empty_cache"
        if qualified == "gc.collect":
            return "gc.collect"
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


def _is_settled(owner: Val | None) -> bool:
    """Whether a method is one of a network in eval mode: `model.scores(x)`."""
    return owner is not None and owner.kind is Kind.MODULE and owner.has(EVAL)


def _makes(summary: Summary, site: Site) -> bool:
    """Whether a function's result has the site of itself, and not because it was handed in."""
    return summary.returns is not None and site in with_inner(summary.returns.tokens)


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
