"""What is held: a value kept in a place that outlives the iteration or the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import asks_as_tensor
from gpulint.analysis.code.slots import frees_slots
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.evidence import Evidence
from gpulint.analysis.file.facts import FunctionFacts, Hold, HoldGraph, HoldPlace, HoldRounds, Keep, Loop
from gpulint.analysis.file.summaries import Events, Summary
from gpulint.analysis.flow.calls import Calls
from gpulint.analysis.flow.peaks import loop_names
from gpulint.analysis.values.state import State
from gpulint.analysis.values.values import (
    LARGE,
    MAYBE,
    UNSHOWN,
    Detached,
    Holder,
    Kind,
    ParamToken,
    Val,
    held_parts,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


class Keeping(Calls):
    """Adds what is held, and the record of a run: its facts, events and summary."""

    def __init__(
        self, file: FileAnalysis, function: ir.Function, evidence: Evidence, state: State, record: bool
    ) -> None:
        super().__init__(file, function, evidence, state)
        self.record = record
        self.summary = Summary()
        self.facts = FunctionFacts(function, state.grad)
        self.events = Events()
        self.guards: list[ir.Stmt] = []
        self.exits: list[State] = []
        self.raises: list[State] = []
        self.broken: list[State] = []
        self.jumps: list[dict[str, list[State]]] = []
        self.handlers_open = 0
        self.tried: frozenset[str] = frozenset()
        self.given: dict[str, Val] = {}  # what one caller gives, where the function is followed for it alone

    def eval_quietly(self, expr: ir.Expr) -> Val:
        record, self.record = self.record, False
        state = self.state
        self.state = state.copy()
        value = self.eval(expr)
        self.state, self.record = state, record
        return value

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
        bounded = bounded or (how == "item" and frees_slots(self.function, path))
        self._note_keep(path, parts, how, bounded or self._resets_whole(path), keep)
        loops = tuple(self.loops[max(born, 0) :])
        if born >= 0 and not loops:
            return None
        if born < 0 and not loops and (self.function.name in ("<module>", "__init__", "setup", "reset")):
            return None
        part = _strongest(parts)
        if part is None or (part.kind is Kind.DEVICE and not in_container):
            return None
        holder = self._holder_of(path)
        if self.record and self.stmt is not None:
            at = expr if expr is not None else self.stmt
            root = path.partition(".")[0].partition("[")[0]
            hold = Hold(
                self.function, self.stmt, at, self._tensor_leaves(leaves, part.kind), part,
                HoldPlace(how, path, self._holder_kind(path, born), in_container, frozenset({holder}), keep),
                HoldRounds(loops, bounded or self._resets(path, root, loops)),
                HoldGraph(self.state.grad, any(site in self.file.evaluating for site in part.sites)),
            )  # fmt: skip
            hold.rounds.birth_loop = self.loops[born - 1] if 0 < born <= len(self.loops) else None
            hold.are_tensors = all(self.eval_quietly(leaf).is_surely_tensor for leaf in hold.leaves)
            hold.unshown = self._unshown(hold.leaves)
            hold.given = leaves[0] if leaves else None
            hold.rounds.fresh_view = self._is_fresh_view(leaves)
            hold.rounds.over_data = any(loop.over_data for loop in loops)
            hold.rounds.over_batches = any(loop.over_data and not loop.over_pairs for loop in loops)
            hold.rounds.over_items = any(loop.over_items for loop in loops)
            outside = len(self.loops) - len(loops)
            hold.rounds.made_inside = not loops or any(
                site.depth > outside or site.depth < 0 for site in part.sites
            )
            if how == "item" and self._is_overwritten_slot(loops):
                hold.rounds.bounded = True
            self.events.holds[(id(at.origin), path)] = hold
        return holder

    def _unshown(self, leaves: tuple[ir.Expr, ...]) -> str:
        """The first leaf that may be a number on some path: a criterion made it, and nothing asks of it what only a tensor has."""
        for leaf in leaves:
            known = leaf.path in self.evidence.backward or asks_as_tensor(self.function, leaf.path)
            if self.eval_quietly(leaf).has(UNSHOWN) and not known:
                return leaf.path or "what is held"
        return ""

    def list_held(self, call: ir.Call, value: Val, leaf: ir.Expr, outer: Loop | None) -> None:
        """A list without a name, which the call makes one tensor of, keeps device tensors round after round."""
        assert self.stmt is not None
        path = call.func.path or call.method
        leaves, loops = self._tensor_leaves((leaf,), Kind.DEVICE), tuple(self.loops[-1:])
        hold = Hold(
            self.function, self.stmt, call, leaves, value, HoldPlace("join", path, "variable", True),
            HoldRounds(loops, False), HoldGraph(self.state.grad, False),
        )  # fmt: skip
        hold.call, hold.rounds.birth_loop, hold.given = call, outer, leaf
        hold.rounds.over_data = loops[0].over_data
        hold.rounds.over_batches = loops[0].over_data and not loops[0].over_pairs
        hold.rounds.over_items = loops[0].over_items
        self.events.holds[(id(call.origin), path)] = hold

    def _tensor_leaves(self, leaves: tuple[ir.Expr, ...], kind: Kind) -> tuple[ir.Expr, ...]:
        """The innermost expressions, through displays and sums, whose values are what is held; the large ones first."""
        found: list[ir.Expr] = []
        small: list[ir.Expr] = []
        stack = list(reversed(leaves))
        while stack:
            leaf = stack.pop()
            if isinstance(leaf, ir.Seq):
                stack.extend(reversed(leaf.items))
            elif isinstance(leaf, ir.DictDisplay):
                stack.extend(value for _, value in reversed(leaf.pairs))
            elif isinstance(leaf, ir.Op) and leaf.op in ("+", "-", "*", "/", "neg"):
                stack.extend(reversed(leaf.operands))
            elif (value := self.eval_quietly(leaf)).kind is kind:
                aside = kind is Kind.DEVICE and not value.has(LARGE)
                (small if aside else found).append(leaf)
        return (*found, *small)

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
        if isinstance(stmt.targets[0].base, ir.Sub):
            return False  # of several keys one is the item's
        index, inner = stmt.targets[0].index, loops[-1].stmt
        if not isinstance(index, ir.Name) or not isinstance(inner, ir.For):
            return False
        iterable, target = inner.iterable, inner.target
        around = loops[-2]
        fresh = around.assigned | (loop_names(around.stmt) if isinstance(around.stmt, ir.For) else set())
        older = iterable.path is not None and iterable.path.partition(".")[0] not in fresh
        if older and isinstance(target, ir.Name):
            return target.id == index.id  # `for layer in self.layers`: the same keys in each round
        if (
            isinstance(iterable, ir.Call)
            and iterable.method in ("enumerate", "items")
            and isinstance(target, ir.Seq)
        ):
            target = target.items[0]
        elif not (isinstance(iterable, ir.Call) and iterable.method == "range"):
            return False
        return isinstance(target, ir.Name) and target.id == index.id

    def _holder_of(self, path: str) -> Holder:
        root, _, rest = path.partition(".")
        if rest and root == self.self_name and self.cls is not None:
            return self.file.holder(self.cls.cls.qualname, rest)
        owner = self.state.vars.get(root) if rest else None
        if owner is not None and owner.ref.__class__ is ClassInfo:
            return self.file.holder(owner.ref.cls.qualname, rest)
        return self.file.holder("" if self.default_born(path) < 0 else self.function.qualname, path)

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
                            Keep(
                                origin,
                                token.name,
                                holder,
                                into,
                                how_kept,
                                stmt,
                                bounded,
                                *place,
                                cut,
                                self.state.collections.get(token.name),
                            )
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
            if hold.graph.state not in ("unknown", "live") or (
                loop not in hold.rounds.loops if loop is not None else hold.rounds.loops
            ):
                continue
            if hold.value.kind is Kind.DEVICE:
                hold.graph.state = "device"
                continue
            if hold.value.kind is not Kind.GRAPH:
                continue
            sites = hold.value.sites
            freed = sites & self.state.freed
            if freed and sites & self.state.retained:
                hold.graph.state = "retained"
            elif freed:
                hold.graph.state, hold.graph.wholly_freed = "freed", sites <= self.state.freed
            else:
                hold.graph.state = "live"


def _strongest(parts: list[Val]) -> Val | None:
    graphs = [part for part in parts if part.kind is Kind.GRAPH]
    for part in graphs:
        if not part.has(MAYBE):
            return part
    if graphs:
        return graphs[0]
    devices = [part for part in parts if part.kind is Kind.DEVICE]
    large = [part for part in devices if part.has(LARGE) and not part.has(MAYBE)]
    return next(iter(large or devices), None)
