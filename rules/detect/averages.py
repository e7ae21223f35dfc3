"""Running averages updated with grad enabled: weights (EMA, target networks), statistics of activations, baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.hooks import keeps_graph

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import cuts, is_accumulation, pairs, passes_graph_by, targets
from gpulint.analysis.file.gradmode import is_neutral_context, of_call
from gpulint.analysis.questions.backward.cutting import cuts_graph
from gpulint.analysis.questions.grad.frozen_networks import made_without_grad
from gpulint.analysis.torch.names import REDUCTIONS
from gpulint.analysis.values.values import MAYBE, MIXED, UNSURE_GRAD, Grad, Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.facts import Forward, FunctionFacts, Hold
    from gpulint.analysis.file.program import FileAnalysis

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_IN_PLACE = frozenset({"add_", "lerp_", "copy_"})


@dataclass(slots=True)
class Average:
    """`target = a * target + b * value` under grad, where `value` has a graph.

    `what` is "weights", "statistics" or "value". `leaves` are the expressions to detach, `starts` those from which other
    statements of the function start the average. `against` says in one clause why that may change what is trained.
    """

    function: ir.Function
    stmt: ir.Stmt
    target: ir.Expr
    leaves: tuple[ir.Expr, ...]
    what: str
    hold: Hold | None = None
    only_called_elsewhere: tuple[ir.Function, ...] = ()
    starts: tuple[ir.Expr, ...] = ()
    against: str = ""
    doubt: str = ""  # in a clause, why it may have no graph


def averages(file: FileAnalysis) -> list[Average]:
    """Every running average of the file that takes a graph in with each update."""
    functions = file.function_facts
    found: list[Average] = []
    known = {facts.function: facts for facts in functions}
    for function in file.module.functions:
        evidence = file.evidence[function]
        facts = known.get(function)
        if facts is not None and facts.role.is_test:
            continue
        if evidence.called & _PARAMETERS and file.grad_at_entry(function) is Grad.ENABLED:
            elsewhere = (function,) if facts is None else facts.only_called_elsewhere
            for average in _of_weights(file, function):
                average.only_called_elsewhere = elsewhere
                found.append(average)
        if _is_module_forward(file, function) and file.grad_at_entry(function) is Grad.ENABLED:
            found += _of_statistics(file, functions, function)
        if facts is not None:
            found += _of_values(file, facts)
    for item in found:
        item.starts = _starts(item)
        if _is_given_on(item):
            item.against = "what it gives is computed from the average, and a backward may go through that"
    seen: set[int] = set()
    return [item for item in found if id(item.stmt) not in seen and not seen.add(id(item.stmt))]  # type: ignore[func-returns-value]


def _starts(average: Average) -> tuple[ir.Expr, ...]:
    """What else the function binds the average to with the same graph: `self.mean = mu` for the first batch."""
    names = {part.path for leaf in average.leaves for part in ir.walk(leaf) if isinstance(part, ir.Name)}
    found: list[ir.Expr] = []
    for statement in ir.statements(average.function.body):
        if statement is average.stmt or not isinstance(statement, ir.Assign):
            continue
        for target, value in pairs(statement):
            if same(target, average.target) and keeps_graph(
                value, {name for name in names if name is not None}
            ):
                found.append(value)
    return tuple(found)


def _is_given_on(average: Average) -> bool:
    """Whether what the function returns after the update was computed from the average."""
    carried: set[str] = set()
    for statement in _after(average.function.body, average.stmt):
        if isinstance(statement, ir.Return):
            if statement.value is not None and _reads(statement.value, average.target, carried):
                return True
        elif isinstance(statement, ir.AugAssign):
            if statement.target.path is not None and _reads(statement.value, average.target, carried):
                carried.add(statement.target.path)
        elif isinstance(statement, ir.Assign) and not same(statement.targets[0], average.target):
            for target, value in pairs(statement):
                if target.path is not None and _reads(value, average.target, carried):
                    carried.add(target.path)
    return False


def _reads(value: ir.Expr, target: ir.Expr, carried: set[str]) -> bool:
    """Whether an expression has the average, or what was computed from it, with its graph."""
    if same(value, target) or (value.path is not None and value.path in carried):
        return True
    if cuts_graph(value):
        return False
    return any(_reads(part, target, carried) for part in value.children())


def _after(block: list[ir.Stmt], origin: ir.Stmt) -> list[ir.Stmt]:
    """The statements that may run after `origin`, other branches left out."""
    for position, statement in enumerate(block):
        rest = [inner for later in block[position + 1 :] for inner in (later, *_inside(later))]
        if statement is origin:
            return rest
        for branch in statement.blocks():
            if any(inner is origin for inner in ir.statements(branch)):
                return _after(branch, origin) + rest
    return []


def _inside(statement: ir.Stmt) -> list[ir.Stmt]:
    return [inner for block in statement.blocks() for inner in ir.statements(block)]


# --- weights -------------------------------------------------------------------------------------------------------


def _of_weights(file: FileAnalysis, function: ir.Function) -> Iterator[Average]:
    for statement in recording(file, function, function.body, True):
        if not isinstance(statement, ir.For):
            continue
        weights = _parameter_names(statement)
        if not weights:
            continue
        inner = set(map(id, recording(file, function, statement.body, True)))
        outer = set(map(id, recording(file, function, function.body, True)))
        for update in ir.statements(statement.body):
            if id(update) in inner & outer:
                for target, value in _updates(update):
                    if _is_cut_before(statement.body, target):
                        continue
                    leaves = tuple(part for part in _summands(value) if keeps_graph(part, weights))
                    if leaves and not passes_graph_by(target) and not _is_own(target, leaves):
                        found = Average(function, update, target, _names_in(leaves, weights), "weights")
                        found.doubt = _frozen_doubt(function, statement)
                        yield found


def _frozen_doubt(function: ir.Function, loop: ir.For) -> str:
    """What speaks for it that no parameter that the loop goes through requires grad there."""
    networks = {
        part.func.base.path
        for part in ir.walk(loop.iterable)
        if isinstance(part, ir.Call) and part.method in _PARAMETERS and isinstance(part.func, ir.Attr)
    }
    frozen = networks and all(path is not None and made_without_grad(function, path) for path in networks)
    return f"`{min(map(str, networks))}` is made without grad, and may be so again here" if frozen else ""


def _parameter_names(loop: ir.For) -> set[str]:
    """The loop's names for parameters: `p` in `for name, p in model.named_parameters()`, both of a `zip`."""
    found: set[str] = set()
    stack: list[tuple[ir.Expr, ir.Expr]] = [(loop.target, loop.iterable)]
    while stack:
        target, iterable = stack.pop()
        if not isinstance(iterable, ir.Call):
            continue
        if iterable.method == "enumerate" and isinstance(target, ir.Seq) and len(target.items) == 2:
            stack.append((target.items[1], iterable.args[0]))
        elif (
            iterable.method == "zip"
            and isinstance(target, ir.Seq)
            and len(target.items) == len(iterable.args)
        ):
            stack += zip(target.items, iterable.args, strict=True)
        elif iterable.method in _PARAMETERS and isinstance(iterable.func, ir.Attr):
            if (
                iterable.method == "named_parameters"
                and isinstance(target, ir.Seq)
                and len(target.items) == 2
            ):
                target = target.items[1]
            if isinstance(target, ir.Name):
                found.add(target.id)
    return found


def _updates(statement: ir.Stmt) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """What a statement averages, and with what: `t = a * t + b * v`, `t.mul_(a).add_(v, alpha=b)`, `t.lerp_(v, b)`."""
    if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ir.Sub) and isinstance(target.index, ir.Slice):
            target = target.base  # `mean[:] = …` writes into the same tensor
        if isinstance(target, (ir.Attr, ir.Sub)) and _is_average(target, value):
            yield target, value
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method not in _IN_PLACE or not isinstance(call.func, ir.Attr) or not call.args:
            return
        base = call.func.base
        scaled = isinstance(base, ir.Call) and base.method == "mul_" and isinstance(base.func, ir.Attr)
        if scaled and call.method == "add_":
            yield base.func.base, call.args[0]  # type: ignore[attr-defined]
        elif (
            (call.method == "lerp_" and base.path is not None)
            or (call.method == "copy_" and base.path is not None and _is_average(base, call.args[0]))
            or (call.method == "add_" and base.path is not None and _is_step_towards(base, call.args[0]))
        ):
            yield base, call.args[0]
    elif isinstance(statement, ir.AugAssign) and statement.op == "+":
        if isinstance(statement.target, ir.Attr) and _is_step_towards(statement.target, statement.value):
            yield statement.target, statement.value


def _is_average(target: ir.Expr, value: ir.Expr) -> bool:
    """Whether the value is a sum of products, one of which scales the target: a mean that decays."""
    if isinstance(value, ir.Call) and value.method == "lerp" and value.args:
        base = value.func.base if isinstance(value.func, ir.Attr) else None
        return same(value.args[0], target) or (base is not None and same(base, target))
    if not isinstance(value, ir.Op) or value.op != "+":
        return False
    left, right = value.operands
    if (same(left, target) and _is_step_towards(target, right)) or (
        same(right, target) and _is_step_towards(target, left)
    ):
        return True
    return any(
        _is_product(own) and _contains(own, target) and _is_product(other) and not _contains(other, target)
        for own, other in ((left, right), (right, left))
    )


def _is_step_towards(target: ir.Expr, value: ir.Expr) -> bool:
    """`rate * (x - target)`, with or without the rate."""
    factors = value.operands if _is_product(value) else (value,)  # type: ignore[attr-defined]
    return any(
        isinstance(part, ir.Op) and part.op == "-" and same(part.operands[1], target) for part in factors
    )


def _is_product(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Op) and expr.op == "*"


def _contains(expr: ir.Expr, target: ir.Expr) -> bool:
    return any(same(part, target) for part in ir.walk(expr))


def same(a: ir.Expr, b: ir.Expr) -> bool:
    """Whether two expressions are the same code, places and constants alone."""
    if a.path is not None or b.path is not None:
        return a.path == b.path
    if isinstance(a, ir.Sub) and isinstance(b, ir.Sub):
        return same(a.base, b.base) and same(a.index, b.index)
    return isinstance(a, ir.Const) and isinstance(b, ir.Const) and a.value == b.value


def _summands(value: ir.Expr) -> list[ir.Expr]:
    """The operands of sums and products."""
    found: list[ir.Expr] = []
    stack = [value]
    if isinstance(value, ir.Call) and value.method == "lerp":
        stack = [*value.args[:2], *(value.func.children() if value.func.path is None else ())]
        if isinstance(value.func, ir.Attr) and value.func.path not in ("torch.lerp",):
            stack.append(value.func.base)
    while stack:
        expr = stack.pop()
        if isinstance(expr, ir.Op) and expr.op in ("+", "-", "*", "/"):
            stack += expr.operands
        else:
            found.append(expr)
    return found


def _names_in(leaves: tuple[ir.Expr, ...], graphs: set[str]) -> tuple[ir.Expr, ...]:
    """The names themselves within the leaves: what a fix detaches."""
    return tuple(
        part for leaf in leaves for part in ir.walk(leaf) if isinstance(part, ir.Name) and part.id in graphs
    )


def _is_own(target: ir.Expr, leaves: tuple[ir.Expr, ...]) -> bool:
    """Whether only the target itself, a parameter of the loop, is what has a graph."""
    return all(same(leaf, target) for leaf in leaves)


def _is_cut_before(body: list[ir.Stmt], target: ir.Expr) -> bool:
    """`target.detach_()`, `target.requires_grad_(False)` in the same round: there is one link of the chain at most."""
    return any(
        isinstance(call.func, ir.Attr)
        and call.method in ("detach_", "requires_grad_")
        and same(call.func.base, target)
        for _, call in ir.calls(body)
    )


# --- statistics of activations -------------------------------------------------------------------------------------


def _of_statistics(
    file: FileAnalysis, functions: list[FunctionFacts], function: ir.Function
) -> Iterator[Average]:
    """Averages in a module's forward of what it is given, where this file is seen to give it a network's output."""
    info = file.class_of(function)
    found = [
        (update, target, value)
        for update in recording(file, function, function.body, True)
        for target, value in _updates(update)
        if target.path is not None and target.path.startswith("self.") and not passes_graph_by(target)
    ]
    if info is None or not found:
        return
    graphs = {
        param.name for param in function.params[1:] if _is_given_graph(file, functions, info, param.name)
    }
    inner = _of_inner_layer(file, function, info)
    made = _made_by_layers(file, function)
    updates = {id(update) for update, _, _ in found}
    renewed = frozenset(
        path for method in info.cls.methods.values() for path in _renewed(file, method, updates)
    )
    for update, target, value in found:
        graphs = graphs - made if target.path in renewed else graphs | made
        leaves = tuple(
            part
            for part in _summands(value)
            if not same(part, target)
            and ((keeps_graph(part, graphs) and _reduces(part)) or part.path in inner)
        )
        if leaves:
            yield Average(function, update, target, leaves, "statistics")


def _renewed(file: FileAnalysis, method: ir.Function, updates: set[int]) -> Iterator[str]:
    """The attributes that a method cuts from their graph or starts afresh, the updates themselves aside."""
    yield from cuts(method.body)
    if method.name == "__init__":
        return
    if method.name != "forward":
        yield from file.resets_of(method)
        return
    for statement in ir.statements(method.body):
        if isinstance(statement, ir.Assign) and id(statement) not in updates:
            yield from (target.path for target in targets(statement) if target.path is not None)


def _made_by_layers(file: FileAnalysis, function: ir.Function) -> set[str]:
    """The names that a forward binds once, to what layers of its own make of its input with grad enabled."""
    if function not in file.states:
        file.summary(function)
    state = file.states[function].vars
    bound = Counter(
        target.path for statement in ir.statements(function.body) for target in targets(statement)
    )
    return {
        name
        for name, times in bound.items()
        if times == 1 and name is not None and (known := state.get(name)) is not None
        if known.kind is Kind.GRAPH and not known.has(MAYBE | UNSURE_GRAD | MIXED)
        if any(site.what == "forward" and site.function is function for site in known.sites)
    }


def _of_inner_layer(file: FileAnalysis, function: ir.Function, info: ClassInfo) -> frozenset[str]:
    """The names that a layer binds to means of its input. A layer with parameters of its own stands inside a network,
    so that its input has a graph; a normalizer of data has none."""
    if not _has_parameters(file, info):
        return frozenset()
    given = frozenset(file.param_token(function, param.name) for param in function.params[1:])
    if function not in file.states:
        file.summary(function)  # a forward without a loop is not followed otherwise
    state = file.states[function].vars
    reduced: set[str] = set()
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for target, value in pairs(statement):
                name = target.path
                known = state.get(name) if name is not None else None
                if known is None or known.kind not in (Kind.SYMBOL, Kind.UNKNOWN):
                    continue
                by_hand = _is_arithmetic(value) and _is_all_of(value, reduced)
                if known.tokens & given and (_reduces(value) or _calls_own(file, value) or by_hand):
                    reduced.add(name)  # type: ignore[arg-type]
    return frozenset(reduced)


def _is_arithmetic(value: ir.Expr) -> bool:
    return isinstance(value, ir.Op) and value.op in ("+", "-", "*", "/", "**")


def _is_all_of(value: ir.Expr, names: set[str]) -> bool:
    """Whether every name in an expression is one of these, and there is one: `mean_of_squares - mean ** 2`."""
    paths = {part.path for part in ir.walk(value) if isinstance(part, ir.Name)}
    return bool(paths) and paths <= names


def _has_parameters(file: FileAnalysis, info: ClassInfo) -> bool:
    """Whether the constructor makes parameters or layers, or another module's constructor of this file makes it."""
    init = info.cls.methods.get("__init__")
    if init is not None and any(
        (qualified := file.names.qualify(call.func.path or "")) is not None
        and qualified.startswith("torch.nn.")
        and qualified.rsplit(".", 1)[-1][:1].isupper()
        for _, call in ir.calls(init.body)
    ):
        return True
    makers = (
        other.cls.methods.get("__init__")
        for other in file.classes.values()
        if other.is_module and other is not info
    )
    return any(
        call.func.path == info.cls.name
        for maker in makers
        if maker is not None
        for _, call in ir.calls(maker.body)
    )


def _calls_own(file: FileAnalysis, value: ir.Expr) -> bool:
    """Whether the value is what a function of this file gives, whose reductions were followed."""
    if not isinstance(value, ir.Call) or not isinstance(value.func, ir.Name):
        return False
    callee = file.free_name(file.module.body, value.func.id)
    return callee.kind is Kind.FUNCTION and any(
        _reduces(root) for statement in ir.statements(callee.ref.body) for root in statement.expressions()
    )


def _is_module_forward(file: FileAnalysis, function: ir.Function) -> bool:
    owner = file.class_of(function)
    return function.name == "forward" and owner is not None and owner.is_module


def _reduces(expr: ir.Expr) -> bool:
    """Whether a batch is brought down to a statistic: a mean, or a product that sums over the batch."""
    return any(
        (isinstance(part, ir.Call) and part.method in _REDUCING)
        or (isinstance(part, ir.Op) and part.op == "@")
        for part in ir.walk(expr)
    )


_REDUCING = REDUCTIONS | {"matmul", "mm", "einsum"}


def _is_given_graph(file: FileAnalysis, functions: list[FunctionFacts], info: ClassInfo, name: str) -> bool:
    """Whether a call of this module in the file passes the output of a forward made with grad enabled."""
    forward = info.cls.methods["forward"]
    names = [param.name for param in forward.params][1:]
    for facts in functions:
        made = [item for item in facts.forwards if item.mode.grad is Grad.ENABLED and item.site is not None]
        if not made:
            continue
        for _, call in ir.calls(facts.function.body):
            if _calls(file, facts.function, call, info):
                argument = call.argument(names.index(name), name)
                if argument is not None and any(_is_output(argument, item) for item in made):
                    return True
    return False


def _calls(file: FileAnalysis, function: ir.Function, call: ir.Call, info: ClassInfo) -> bool:
    path = call.func.path
    if path is None:
        return False
    state = file.states.get(function)
    known = state.vars.get(path) if state is not None else None
    if known is None:
        known = file.free_name(function, path) if "." not in path else None
    if known is None and path.startswith("self.") and (owner := file.class_of(function)) is not None:
        known = owner.attr(path[5:])
    return known is not None and known.kind in (Kind.MODULE, Kind.INSTANCE) and known.ref is info


def _is_output(argument: ir.Expr, forward: Forward) -> bool:
    if argument is forward.call:
        return True
    stmt = forward.stmt
    return (
        isinstance(stmt, ir.Assign)
        and stmt.value is forward.call
        and argument.path is not None
        and any(target.path == argument.path for target in targets(stmt))
    )


# --- values that were followed -------------------------------------------------------------------------------------


def _of_values(file: FileAnalysis, facts: FunctionFacts) -> Iterator[Average]:
    """Averages of what is known to have a graph, or of what the function itself detaches where it uses it."""
    words = file.evidence[facts.function].words
    for hold in facts.holds:
        stmt = hold.stmt
        if (
            hold.place.how != "add"
            or hold.graph.grad is not Grad.ENABLED
            or hold.graph.consumed
            or hold.graph.fed_back
            or hold.rounds.bounded
        ):
            continue
        if (
            not isinstance(stmt, ir.Assign)
            or stmt.value is None
            or not _is_average(stmt.targets[0], stmt.value)
            or passes_graph_by(stmt.targets[0])
        ):
            continue
        value = hold.value
        if value.kind is not Kind.GRAPH or value.has(MAYBE | UNSURE_GRAD | MIXED):
            continue
        if not _outlives_step(hold):
            continue
        leaves = tuple(leaf for leaf in hold.leaves if not isinstance(leaf, ir.Const))
        yield Average(facts.function, stmt, stmt.targets[0], leaves, "value", hold)
    if facts.has_backward and "detach" in words:
        yield from _detached_at_use(file, facts)


def _outlives_step(hold: Hold) -> bool:
    if hold.rounds.loops:
        return any(loop.steps or loop.backwards for loop in hold.rounds.loops)
    return (
        hold.place.holder_kind == "attribute"
        and hold.place.never_reset
        and any(_reduces(leaf) for leaf in hold.leaves)
    )


def _detached_at_use(file: FileAnalysis, facts: FunctionFacts) -> Iterator[Average]:
    """`baseline = a * baseline + b * value` in a loop that uses `baseline.detach()`: the author knows of its graph."""
    function = facts.function
    if facts.grad_at_entry is not Grad.ENABLED:
        return
    for loop in (s for s in ir.statements(function.body) if isinstance(s, (ir.For, ir.While))):
        used = {
            call.func.base.path
            for _, call in ir.calls(loop.body)
            if call.method == "detach" and isinstance(call.func, ir.Attr)
        }
        for update in recording(file, function, loop.body, True):
            if not isinstance(update, ir.Assign) or update.value is None:
                continue
            target = update.targets[0]
            if (
                not isinstance(target, ir.Name)
                or target.id not in used
                or not is_accumulation(target, update.value)
                or _is_bound_before(loop.body, update, target.id)
            ):
                continue
            leaves = _others(update.value, target, loop) if _is_average(target, update.value) else ()
            if leaves:
                yield Average(function, update, target, leaves, "value")


def _is_bound_before(block: list[ir.Stmt], update: ir.Stmt, name: str) -> bool:
    """Whether every way to the update within the round binds the name to something else first."""
    for statement in block:
        if statement is update:
            return False
        if any(target.path == name for target in targets(statement)) and isinstance(statement, ir.Assign):
            return True
        for inner in statement.blocks():
            if any(one is update for one in ir.statements(inner)):
                return _is_bound_before(inner, update, name)
    return False


def _others(value: ir.Expr, target: ir.Expr, loop: ir.For | ir.While) -> tuple[ir.Expr, ...]:
    """What is averaged in, where it is a name that the loop binds to a call's result, not detached on its way."""
    bound: dict[str, ir.Expr] = {}
    for statement in ir.statements(loop.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for name in targets(statement):
                if isinstance(name, ir.Name):
                    bound[name.id] = statement.value
    return tuple(
        part
        for part in _summands(value)
        if isinstance(part, ir.Name)
        and not same(part, target)
        and part.id in bound
        and isinstance(bound[part.id], ir.Call)
        and not any(isinstance(p, ir.Call) and p.method in _CUTTING for p in ir.walk(bound[part.id]))
    )


_CUTTING = frozenset("detach item tolist numpy float int len".split())


# --- grad mode, read off the blocks --------------------------------------------------------------------------------


def recording(
    file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], enabled: bool
) -> Iterator[ir.Stmt]:
    """The statements of a block that run with grad enabled, if the block does; where it is not certain, none."""
    if "set_grad_enabled" in file.evidence[function].words:
        return
    for statement in block:
        inner = enabled
        if isinstance(statement, ir.With):
            for expr, _ in statement.items:
                inner = _mode_of(file, expr, inner)
        if enabled:
            yield statement
        for nested in statement.blocks():
            yield from recording(file, function, nested, inner)


def _mode_of(file: FileAnalysis, expr: ir.Expr, enabled: bool) -> bool:
    if isinstance(expr, ir.Call) and expr.func.path is not None:
        mode = of_call(file.names.qualify(expr.func.path), expr)
        if mode is not None:
            return mode is Grad.ENABLED
    return enabled and is_neutral_context(expr)
