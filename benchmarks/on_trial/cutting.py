"""Where what is kept is cut from its graph, and what speaks against that: who may want the graph, or a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from on_trial.graph_state import backwards
from on_trial.shown import shown
from on_trial.stores import Owner, Store, graph_in

from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.forwards import forward_of
from gpulint.analysis.syntax.nodes import key_of, last_name

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked
    from gpulint.analysis.evaluate.frames import Frame
    from gpulint.analysis.project.file import Function
    from gpulint.analysis.syntax.flow import Flow

_SUMS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SINKS: Final = frozenset(
    "len print float int round str format repr add_scalar add_scalars log set_postfix info debug warning error write".split()
)
_NUMERIC: Final = ("math.", "numpy.", "statistics.")
_LIKE_ARGUMENTS: Final = frozenset({"sum", "min", "max", "abs"})
_FILLING: Final = frozenset({"append", "extend", "clear", "insert"})
_JOINS: Final = frozenset({"cat", "stack", "vstack", "hstack", "concat"})
_TO_HOST: Final = frozenset({"cpu", "numpy", "tolist", "item"})
_OUT_OF_SIGHT: Final = frozenset({"given", "too much", "called", "optimized", "copied"})


@dataclass(frozen=True, slots=True)
class Cut:
    """An expression whose value goes on without its graph, and the frame that it stands in."""

    node: Any
    frame: Frame


def cuts(asked: Asked, store: Store, at: Any) -> tuple[Cut, ...]:
    """The expressions of the file that give what is kept its graph, at the place where it is told."""
    if store.frame.caller is None:
        whole, frame = _within(asked, store, at)
        container = store.container if store.container is not store.value else None
        return tuple(_with_graph(asked, whole, frame, container))
    call, frame = list(store.frame.chain())[-1]
    if at is not call and at is not frame.flow.statement_of(call):
        whole, frame = _within(asked, store, at)  # what another function puts into what is handed over
        return tuple(_with_graph(asked, whole, frame, None))
    given = [*call.args, *(one.value for one in call.keywords)]
    found = [cut for one in given for cut in _with_graph(asked, one, frame, None)]
    if call not in frame.flow.calls.get(last_name(call.func), ()):
        return tuple(found)  # no call is written: `log["loss"] = loss` runs a method
    return tuple(one for one in found if _gets_to(asked, one, store))


def _within(asked: Asked, store: Store, at: Any) -> tuple[Any, Frame]:
    """What is stored at a place, and the frame of its function."""
    if at is store.at or at is store.value:
        return store.value, store.frame
    for function in asked.file.functions:
        if at in function.flow.blocks or at in function.flow.parents:
            return getattr(at, "value", at) if isinstance(at, ast.stmt) else at, asked.root(function)
    return store.value, store.frame


def _gets_to(asked: Asked, cut: Cut, store: Store) -> bool:
    """Whether what is given to a call is what the function that is called keeps."""
    flow = store.frame.flow
    statement = flow.statement_of(store.at)
    return any(
        use.frame.function is store.frame.function and flow.statement_of(use.node) is statement
        for use in uses_of(asked, cut)
    )


def uses_of(asked: Asked, cut: Cut) -> list[Use]:
    """Who uses the graph of what is cut, and would find none."""
    return consumers(asked.evaluator, cut.node, cut.frame, "graph")


def _with_graph(asked: Asked, whole: Any, frame: Frame, container: Any) -> Iterator[Cut]:
    """The operands and entries that have a graph, but for the container itself."""
    own = ast.unparse(container) if container is not None else ""
    stack = [whole]
    while stack:
        node = stack.pop(0)
        inside = _inside(asked, node, own, frame)
        if inside:
            stack = [*inside, *stack]
        elif ast.unparse(node) != own and graph_in(asked.evaluator, asked.evaluator.value_of(node, frame)):
            yield Cut(node, frame)


def _inside(asked: Asked, node: Any, own: str, frame: Frame) -> list[Any]:
    """What something that is kept is made of; empty where that has to be cut as it is."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Call) and own and any(ast.unparse(one) == own for one in ast.walk(node)):
        func: Any = node.func  # `torch.cat([total, x])`, `total.lerp(x, 0.1)`
        is_method = (
            isinstance(func, ast.Attribute) and asked.evaluator.value_of(func.value, frame).kind != "library"
        )
        base = [func.value] if is_method else []
        return [*base, *node.args, *(one.value for one in node.keywords)]
    if isinstance(node, ast.Name) and node in frame.flow.parents:  # a display by its name
        made = frame.flow.reaching(node)
        display = made[0].value if len(made) == 1 and made[0].kind == "assign" and not made[0].path else None
        return _inside(asked, display, own, frame) if isinstance(display, (ast.Dict, ast.Tuple)) else []
    return []


# -- what speaks against it


def is_wanted(asked: Asked, cut: Cut, store: Store) -> bool:
    """Whether a backward goes through what is cut."""
    collected = store.way == "returned" and not isinstance(store.at, ast.Return)
    given = {one.value for one in store.frame.flow.returns} if collected else set()
    # of what a step gives to a framework, the entries beside the loss
    return any(one.node not in given for one in backwards(asked.evaluator, cut.node, cut.frame))


def is_read_after(asked: Asked, store: Store) -> str:
    """Who may go backward through what is computed from an average, in one clause: in whatever method reads it, but for phases that
    do not train."""
    name = (_attribute(store.container) or "").rpartition(".")[2]
    own = store.frame.flow.statement_of(store.at)
    for function in asked.file.functions if name else ():
        flow = function.flow
        several = (
            (uses for key, uses in flow.uses.items() if key.endswith(f".{name}"))
            if name in function.words
            else ()
        )
        for use in (one for uses in several for one in uses):
            if flow.statement_of(use) is own or (flow is store.frame.flow and _is_apart(flow, use, store.at)):
                continue
            if _is_of_others(asked, use, function, store) or _is_updated(flow, use):
                continue
            for one in consumers(asked.evaluator, use, asked.root(function), "graph"):
                if one.role in ("backward", "returned", "fed") or one.role in _OUT_OF_SIGHT:
                    return "what it gives is computed from the average, and a backward may go through that"
    return ""


def _is_of_others(asked: Asked, use: Any, function: Function, store: Store) -> bool:
    """Whether an attribute of the same name is one of an object of another class."""
    mine, base = store.frame.function.cls, getattr(use, "value", None)
    own = isinstance(base, ast.Name) and base.id == function.self_name
    cls = (
        function.cls
        if own
        else asked.evaluator.value_of(base, asked.root(function)).ref
        if base is not None
        else None
    )
    if not isinstance(cls, Class) or mine is None:
        return False
    return cls not in asked.program.lineage(mine) and mine not in asked.program.lineage(cls)


def _is_updated(flow: Flow, use: Any) -> bool:
    """Whether an attribute is read for no more than its own next value, or is a method that is called."""
    above, statement = flow.parents.get(use), flow.statement_of(use)
    if isinstance(above, ast.Call) and above.func is use:
        return True
    if isinstance(above, ast.Attribute) and above.attr[-1:] == "_":
        return isinstance(statement, ast.Expr)  # in place
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return any(key_of(one) == key_of(use) for one in targets if one is not None)


def _attribute(node: Any) -> str | None:
    """The attribute that a container is, or is in."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return key_of(node) if isinstance(node, ast.Attribute) else None


def _is_apart(flow: Flow, node: Any, other: Any) -> bool:
    """Whether one of two places runs while a network trains, and the other while it does not."""
    first, second = (
        {(ast.unparse(test), wanted) for test, wanted in map(_plain, flow.conditions(one))}
        for one in (node, other)
    )
    return any((test, not wanted) in second for test, wanted in first if test.endswith(".training"))


def _plain(condition: tuple[Any, bool]) -> tuple[Any, bool]:
    test, wanted = condition
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    return test, wanted


def starts(asked: Asked, store: Store) -> tuple[Cut, ...]:
    """What else a function gives an average with a graph: `self.mean = mu` for the first batch."""
    flow, key = store.frame.flow, key_of(store.container)
    own = flow.statement_of(store.at)
    return tuple(
        cut
        for one in flow.definitions.get(key or "", ())
        if one.kind == "assign" and not one.path and one.statement is not own
        for cut in _with_graph(asked, one.value, store.frame, store.container)
    )


def against(
    asked: Asked, found: Iterable[Cut], store: Store, owner: Owner | None, state: str, holder: str
) -> str:
    """Why what is kept might be needed with its graph, or be no tensor, in one clause; empty where it is proven that neither is so."""
    for cut in found:
        what = f"`{asked.source(cut.node)}`"
        if not shown(asked.evaluator, cut.node, cut.frame) and not _is_freed_summand(
            asked, cut, store, state
        ):
            return f"{what} may be no tensor"
        if state == "retained":
            return f"its graph is kept for another backward, which may go through `{holder}`"
        freed = _freed_by(asked, cut)
        if state == "freed" and freed is None:
            return f"no backward is seen to go through all of {what}: a later one may"
        always = freed is not None and _is_always(freed, cut, store)
        if freed is not None and always and _comes_after(freed, cut):
            continue  # a later backward would not get through it
        within = _functions_of(freed) if freed is not None and always else set()
        elsewhere = cut.frame.function not in within and (
            owner is None or owner.kind not in ("local", "outer")
        )
        why = (
            _wanted(uses_of(asked, cut), holder, within)
            or _unseen_reader(asked, cut, owner, holder)
            or (f"whoever reads `{holder}` may train on it" if elsewhere else "")
        )
        if why:
            return why
    return ""


def _is_freed_summand(asked: Asked, cut: Cut, store: Store, state: str) -> bool:
    """Whether a network's output that a backward has gone through is added to a number: no tuple or dict of tensors is."""
    value = asked.evaluator.value_of(cut.node, cut.frame)
    seen = state == "freed" and value.kind == "tensor" and not value.assumptions
    return seen and is_summand(cut, store) and is_whole(asked, cut)


def is_summand(cut: Cut, store: Store) -> bool:
    """Whether it is added itself, and not in a list."""
    node, parents = cut.node, cut.frame.flow.parents
    while node is not store.value and isinstance(parents.get(node), (ast.BinOp, ast.UnaryOp, ast.IfExp)):
        node = parents[node]
    return store.way == "added" and node is store.value


def are_joined(asked: Asked, holder: str) -> bool:
    """Whether what is kept in a list is joined by torch somewhere in the file: then it is tensors."""
    name = holder.rpartition(".")[2]
    for function in (asked.file.body, *asked.file.functions):
        flow = function.flow
        for key, uses in flow.uses.items() if name in function.words else ():
            for one in uses if key == holder or key.endswith(f".{name}") else ():
                above = flow.parents.get(one)
                if isinstance(above, ast.Call) and one in above.args and last_name(above.func) in _JOINS:
                    return True
    return False


def _functions_of(freed: Iterable[Use]) -> set[Function]:
    """The functions that run some backwards, themselves or by what they call."""
    return {
        where.function for one in freed for where in (one.frame, *(frame for _, frame in one.frame.chain()))
    }


def _wanted(uses: Iterable[Use], holder: str, ran: set[Function]) -> str:
    """Who may go backward through what a cut is made of. What a function returns comes after the backwards that it runs itself."""
    for use in uses:
        if use.role == "returned" and use.frame.function not in ran:
            return f"`{holder}` is returned, and the caller may train on it"
        if use.role == "stored" and "." in use.name and not ran:
            return f"`{use.name}` keeps it, and whoever reads that may train on it"
        if use.role == "fed":
            return "it goes into the next forward, and a backward may go through that"
        if use.role in _OUT_OF_SIGHT or (use.role == "method" and use.path):
            called = getattr(use.node, "func", None)
            name = ast.unparse(called) if called is not None else holder
            return f"`{name}` is not seen, and may run a backward"
    return ""


def _unseen_reader(asked: Asked, cut: Cut, owner: Owner | None, holder: str) -> str:
    """Code that is not seen and gets to the object that keeps it, in the function that gives it there: a method of the function's own
    object that no class in sight has, or whatever is given the object."""
    function, flow = cut.frame.function, cut.frame.flow
    if owner is None or not owner.attributes:
        return ""
    root = owner.key.partition(".")[0]
    for use in flow.uses.get(root, ()):
        above = flow.parents.get(use)
        outer = flow.parents.get(above)
        call, name = (outer, None) if isinstance(above, ast.keyword) else (above, None)
        if isinstance(above, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is above:
            call, name = outer, above.attr
        if not isinstance(call, ast.Call) or call.func is use:
            continue
        cls = function.cls if root == function.self_name else asked.evaluator.value_of(use, cut.frame).ref
        if name is not None and isinstance(cls, Class):
            known = asked.evaluator.method(cls, name) or asked.evaluator.names.fields(cls, name)
            unseen = not known
        else:
            target = asked.evaluator.value_of(call.func, cut.frame)
            here = target.kind in ("function", "class") and getattr(target.ref, "file", None) is asked.file
            unseen = name is None and target.kind != "library" and not here
        if unseen:
            return f"`{ast.unparse(call.func)}` is not seen, and may train on `{holder}`"
    return ""


def _comes_after(freed: Iterable[Use], cut: Cut) -> bool:
    """Whether the backwards have run by the time that something is kept."""
    flow = cut.frame.flow
    own = flow.order.get(flow.statement_of(cut.node), -1)
    for one in freed:
        places = ((one.node, one.frame), *one.frame.chain())
        at = next((node for node, frame in places if frame.function is cut.frame.function), None)
        if at is None or flow.order.get(flow.statement_of(at), own) >= own:
            return False
    return True


def _freed_by(asked: Asked, cut: Cut) -> list[Use] | None:
    """The backwards that go through all the graphs behind something; None where they leave one out."""
    found: list[Use] = []
    calls = [
        (node, frame)
        for one in graph_in(asked.evaluator, asked.evaluator.value_of(cut.node, cut.frame))
        for node, frame in one.origins
        if frame is not None
    ]
    for node, frame in calls:
        through = backwards(asked.evaluator, node, frame)
        if not through:
            return None
        found += through
    return found or None


def _is_always(freed: Iterable[Use], cut: Cut, store: Store) -> bool:
    """Whether one of some backwards runs wherever something is stored."""
    around = _conditions(cut.node, cut.frame) | _conditions(store.at, store.frame)
    more = [_conditions(one.node, one.frame) - around for one in freed]
    sides = {one for conditions in more if len(conditions) == 1 for one in conditions}
    return any(not one for one in more) or any((test, not wanted) in sides for test, wanted in sides)


def _conditions(node: Any, frame: Frame) -> set[tuple[str, bool]]:
    return {
        (ast.unparse(test), wanted)
        for at, where in ((node, frame), *frame.chain())
        for test, wanted in where.flow.conditions(at)
    }


# -- what those who read it ask of it


def takes_numbers(asked: Asked, store: Store, owner: Owner | None) -> bool:
    """Whether every use of a local name of the function takes a number as well as a tensor."""
    name = _local(store, owner)
    return name is not None and _all_take(asked, name, store, set())


def _local(store: Store, owner: Owner | None) -> str | None:
    """The name of what is kept in, where it is one of the function itself, which no other function reads."""
    function = store.frame.function
    if owner is None or owner.kind not in ("local", "outer") or store.frame.caller is not None:
        return None
    if owner.key in function.flow.elsewhere:
        return None  # declared global
    others = (one for one in function.file.functions if one is not function and owner.key in one.words)
    read = (one for one in others if function.is_module or _is_in(one, function))
    return owner.key if next(read, None) is None and owner.key in function.flow.definitions else None


def _is_in(function: Function, outer: Function) -> bool:
    """Whether a function stands in another, however deep."""
    while function.parent is not None:
        function = function.parent
        if function is outer:
            return True
    return False


def _all_take(asked: Asked, name: str, store: Store, seen: set[str]) -> bool:
    if name in seen:
        return True
    seen.add(name)
    flow = store.frame.flow
    if any(one.kind == "parameter" for one in flow.definitions.get(name, ())):
        return False
    own = flow.statement_of(store.at)
    uses = [one for one in flow.uses.get(name, ()) if isinstance(one, ast.Name)]
    return all(flow.statement_of(one) is own or _takes(asked, one, store, seen) for one in uses)


def _takes(asked: Asked, node: Any, store: Store, seen: set[str]) -> bool:
    """Whether a number would do where something stands."""
    frame, flow = store.frame, store.frame.flow
    above = flow.parents.get(node)
    while True:
        if isinstance(above, (ast.Compare, ast.FormattedValue, ast.Expr, ast.If, ast.While, ast.Delete)):
            return True
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mod) and node is above.right:
            return asked.evaluator.value_of(above.left, frame).kind == "text"
        if isinstance(above, ast.AugAssign):
            return node is above.target
        if isinstance(above, ast.Attribute):
            call = flow.parents.get(above)
            return above.attr in _FILLING and isinstance(call, ast.Call) and call.func is above
        if isinstance(above, ast.Subscript):
            if node is not above.value:
                return False
            if not isinstance(above.ctx, ast.Load):
                return True
        elif isinstance(above, ast.keyword):
            pass
        elif isinstance(above, ast.Call):
            if _takes_numbers(asked, above, frame):
                return True
            if not (
                isinstance(above.func, ast.Name) and above.func.id in _LIKE_ARGUMENTS and not above.keywords
            ):
                return False
        elif isinstance(above, ast.Assign):
            names = [one for one in above.targets if isinstance(one, ast.Name)]
            computed = not isinstance(node, (ast.Name, ast.Subscript))
            return (
                computed
                and len(names) == len(above.targets)
                and all(_all_take(asked, one.id, store, seen) for one in names)
            )
        elif not isinstance(
            above, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.List, ast.Tuple, ast.Dict)
        ):
            return False
        node, above = above, flow.parents.get(above)


def _takes_numbers(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    target = asked.evaluator.value_of(call.func, frame)
    full = target.ref if target.kind == "library" and isinstance(target.ref, str) else ""
    if full.startswith("torch"):
        return False
    return full.startswith(_NUMERIC) or last_name(call.func) in _SINKS


def may_wait_on_host(asked: Asked, store: Store, owner: Owner | None) -> bool:
    """Whether all that reads a local list ends on the host, or nobody reads it."""
    name = _local(store, owner)
    if name is None or store.way != "put":
        return False
    flow, own = store.frame.flow, store.frame.flow.statement_of(store.at)
    uses = [one for one in flow.uses.get(name, ()) if isinstance(one, ast.Name)]
    return all(flow.statement_of(one) is own or _ends_on_host(one, flow) for one in uses)


def _ends_on_host(node: Any, flow: Flow) -> bool:
    """Whether what is joined of something is copied to the host before anything else is done with it."""
    above = flow.parents.get(node)
    if isinstance(above, ast.Call) and last_name(above.func) in _JOINS and node in above.args:
        node, above = above, flow.parents.get(above)
    elif (isinstance(above, ast.Attribute) and above.attr in _FILLING) or (
        isinstance(above, ast.Call) and last_name(above.func) == "len"
    ):
        return True
    while (
        isinstance(above, ast.Attribute)
        and above.attr in ("detach", "float")
        and isinstance(flow.parents.get(above), ast.Call)
    ):
        node = flow.parents[above]
        above = flow.parents.get(node)
    if isinstance(above, (ast.Return, ast.Tuple)):
        return True
    return isinstance(above, ast.Attribute) and above.attr in _TO_HOST


def is_whole(asked: Asked, cut: Cut) -> bool:
    """Whether it is what a network gives, and nothing that has been made less of it."""
    node, frame = cut.node, cut.frame
    made = frame.flow.reaching(node) if isinstance(node, ast.Name) and node in frame.flow.parents else ()
    several = [one.value for one in made if one.kind == "assign"] or [node]
    return any(
        isinstance(one, ast.Call) and forward_of(asked.evaluator, one, frame) is not None for one in several
    )


def is_on_host(node: Any) -> bool:
    """Whether an expression says that it gives a copy on the host."""
    return any(
        isinstance(one, ast.Call)
        and (
            last_name(one.func) in _TO_HOST
            or any(isinstance(a, ast.Constant) and a.value == "cpu" for a in one.args)
        )
        for one in ast.walk(node)
    )
