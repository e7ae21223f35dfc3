"""Clean-ups that free nothing: `del` of a name whose object somebody else holds, the cache emptied before the `del`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.lookup import called, qualified, with_words
from gpulint.analysis.questions.device.placement import calls_of

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_EMPTIES = frozenset({"torch.cuda.empty_cache", "torch.cuda.memory.empty_cache"})
_CLEANS = _EMPTIES | {
    "gc.collect", "torch.cuda.synchronize", "torch.cuda.ipc_collect", "torch.cuda.reset_peak_memory_stats",
    "torch.cuda.memory.reset_peak_memory_stats", "time.sleep",
}  # fmt: skip
_SAYS = frozenset(
    "print info debug warning log write is_available is_initialized hasattr isinstance len".split()
)
_TO_GPU = frozenset({"cuda", "to", "from_pretrained", "load_model", "prepare"})


@dataclass(slots=True)
class IdleCleanup:
    """A clean-up without effect. `what` is "parameter", "loop", "order" or "collector".

    parameter: `del` of a function's own parameter, whose callers hold it. loop: `del` of a loop's variable. order: the cache is emptied by
    `emptied` just before `stmt` lets go of `name`; collector: just before `stmt` runs the collector, `name`.
    """

    what: str
    function: ir.Function
    stmt: ir.Stmt
    name: str
    emptied: ir.ExprStmt | None = None
    unproven: str = ""  # in a clause, what between the two sees that the cache is emptied later


def idle_cleanups(file: FileAnalysis) -> list[IdleCleanup]:
    """The clean-ups of a file that free nothing."""
    found: list[IdleCleanup] = []
    for function in with_words(file, frozenset({"empty_cache"})):
        found += list(_of_parameters(file, function)) or _held_by_callers(file, function)
    emptying = _helpers(file)
    words = frozenset({"empty_cache"}) | {helper.name for helper in emptying}
    for function in with_words(file, words):
        found += _too_early(file, function, emptying)
    costly = {id(call.stmt) for one in file.function_facts for call in one.hot_calls if call.per_step}
    return [one for one in found if one.what != "collector" or id(one.emptied) not in costly]


def _of_parameters(file: FileAnalysis, function: ir.Function) -> Iterator[IdleCleanup]:
    """`del` in a function that does nothing but clean up: its caller's names still hold what it got."""
    if function.cls is not None and not any(item.path == "staticmethod" for item in function.decorators):
        params = {param.name for param in function.params[1:]}
    else:
        params = {param.name for param in function.params}
    if not params or not _only_cleans(file, function, function.body, params):
        return
    if not any(_empties(file, function, call) for _, call in ir.calls(function.body)):
        return
    moved = {call.func.base.path for _, call in ir.calls(function.body) if isinstance(call.func, ir.Attr)}
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.For) and (variable := statement.target.path) is not None:
            if variable not in moved and _drops_only(statement, variable):
                if any(
                    isinstance(part, ir.Name) and part.id in params for part in ir.walk(statement.iterable)
                ):
                    yield IdleCleanup("loop", function, _delete_of(statement.body, variable), variable)
        elif isinstance(statement, ir.Delete):
            for target in statement.targets:
                if isinstance(target, ir.Name) and target.id in params and target.id not in moved:
                    yield IdleCleanup("parameter", function, statement, target.id)
                    break


def _held_by_callers(file: FileAnalysis, function: ir.Function) -> Iterator[IdleCleanup]:
    """`del model; torch.cuda.empty_cache()` of a parameter, in a function that every caller in the file gives a name's value."""
    params = {param.name: position for position, param in enumerate(function.params)}
    params = {name: at for name, at in params.items() if name not in file.evidence[function].assigned}
    if not params or function.cls is not None:
        return
    for block in ir.every_block(function.body):
        for position, statement in enumerate(block):
            if isinstance(statement, ir.Delete) and _is_cleaned_after(file, function, block[position + 1 :]):
                for name in _plain_names(statement):
                    if name in params and _named_by_callers(file, function, params[name], name):
                        yield IdleCleanup("parameter", function, statement, name)
                        break


def _is_cleaned_after(file: FileAnalysis, function: ir.Function, rest: list[ir.Stmt]) -> bool:
    for statement in rest:
        if not isinstance(statement, ir.ExprStmt) or not _is_cleaning(file, function, statement.value):
            return False
        if _empties(file, function, statement.value):
            return True
    return False


def _named_by_callers(file: FileAnalysis, function: ir.Function, position: int, name: str) -> bool:
    """Whether there are callers in the file, and a name or an attribute of each holds what it hands over."""
    given = [call.argument(position, name) for _, _, call in calls_of(file, function)]
    return bool(given) and all(isinstance(value, (ir.Name, ir.Attr)) for value in given)


def _only_cleans(file: FileAnalysis, function: ir.Function, block: list[ir.Stmt], params: set[str]) -> bool:
    """Whether a block only deletes names, collects, empties, and says so."""
    for statement in block:
        if isinstance(statement, ir.Delete):
            if not all(isinstance(target, ir.Name) for target in statement.targets):
                return False
        elif isinstance(statement, ir.ExprStmt):
            if not _is_cleaning(file, function, statement.value):
                return False
        elif isinstance(statement, ir.Assign):
            if not (
                isinstance(statement.value, ir.Const)
                and all(isinstance(t, ir.Name) for t in statement.targets)
            ):
                return False
        elif isinstance(statement, ir.Return):
            if not (statement.value is None or isinstance(statement.value, ir.Const)):
                return False
        elif not isinstance(statement, (ir.If, ir.For, ir.Import, ir.Try)):
            return False
        if not all(_only_cleans(file, function, inner, params) for inner in statement.blocks()):
            return False
    return True


def _is_cleaning(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Call):
        return isinstance(expr, ir.Const)
    inside = (part for part in ir.walk(expr) if isinstance(part, ir.Call) and part is not expr)
    cleans = qualified(file, function, expr.func.path) in _CLEANS or expr.method in _SAYS
    return cleans and not any(_runs_something(file, function, call) for call in inside)


def _runs_something(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether what is said in between may need memory of its own: `print(score(model, loader))`."""
    full = qualified(file, function, call.func.path) or ""
    return not full.startswith("torch.cuda.") and call.method not in _SAYS | {"format", "round"}


def _drops_only(loop: ir.For, variable: str) -> bool:
    """Whether a loop does nothing with its variable but delete it."""
    deleted = False
    for statement in ir.statements(loop.body):
        if isinstance(statement, ir.Delete):
            deleted |= any(target.path == variable for target in statement.targets)
        elif not isinstance(statement, ir.If):
            return False
    return deleted


def _delete_of(block: list[ir.Stmt], name: str) -> ir.Stmt:
    return next(
        statement
        for statement in ir.statements(block)
        if isinstance(statement, ir.Delete) and any(target.path == name for target in statement.targets)
    )


# --- the cache before the names ----------------------------------------------------------------------------------


def _helpers(file: FileAnalysis) -> list[ir.Function]:
    """The functions of the file that empty the cache, and of whose arguments nothing is known to be freed."""
    return [
        function
        for function in with_words(file, frozenset({"empty_cache"}))
        if function is not file.module.body
        and not function.params
        and any(
            isinstance(statement, ir.ExprStmt) and _empties(file, function, statement.value)
            for statement in function.body
        )
    ]


def _empties(file: FileAnalysis, function: ir.Function, expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and qualified(file, function, expr.func.path) in _EMPTIES


def _too_early(
    file: FileAnalysis, function: ir.Function, helpers: list[ir.Function]
) -> Iterator[IdleCleanup]:
    for block in ir.every_block(function.body):
        for position, statement in enumerate(block):
            if not isinstance(statement, ir.ExprStmt) or not isinstance(statement.value, ir.Call):
                continue
            if (
                not _empties(file, function, statement.value)
                and called(file, function, statement.value) not in helpers
            ):
                continue
            rest = block[position + 1 :]
            released = _released_next(file, function, rest, helpers)
            if released is None:
                continue
            if isinstance(released, ir.Delete):
                names = _plain_names(released)
                what = "order"
                name = next((n for n in names if _goes_to_gpu(file, function, released, n)), None)
            else:
                what, name = "collector", "gc.collect()"
            if name is not None:
                unproven = _sees_cache(file, function, rest[: rest.index(released)])
                yield IdleCleanup(what, function, released, name, statement, unproven)


def _sees_cache(file: FileAnalysis, function: ir.Function, between: list[ir.Stmt]) -> str:
    """In a clause, what among these statements reads how much is reserved, or starts to count it anew."""
    for _, call in ir.calls(between):
        if "memory" in call.method or "peak" in call.method or "mem_" in call.method:
            return f"`{call.method}` in between sees the cache before it is emptied"
        if call.method in _SAYS and called(file, function, call) is not None:
            return f"`{call.method}` in between may read how much is reserved"
    return ""


def _released_next(
    file: FileAnalysis, function: ir.Function, rest: list[ir.Stmt], helpers: list[ir.Function]
) -> ir.Stmt | None:
    """The `del` that follows with nothing but cleaning in between, or else the run of the collector, unless the cache is emptied
    after it as well."""
    found: ir.Stmt | None = None
    only_cleaning = True
    for statement in rest:
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(call, ir.Call):
            if _empties(file, function, call) or called(file, function, call) in helpers:
                return None
            if found is None and only_cleaning and qualified(file, function, call.func.path) == "gc.collect":
                found = statement
        if only_cleaning and isinstance(statement, ir.Delete):
            found = statement
        only_cleaning = only_cleaning and isinstance(call, ir.Call) and _is_cleaning(file, function, call)
        if found is None and not only_cleaning:
            return None
    return found


def _plain_names(statement: ir.Delete) -> list[str]:
    return [target.id for target in statement.targets if isinstance(target, ir.Name)]


def _goes_to_gpu(file: FileAnalysis, function: ir.Function, until: ir.Stmt, name: str) -> bool:
    """Whether what the name is bound to was made on, or moved to, a device, `model = load(path).cuda()`, and is there still:
    a network is moved in place."""
    found, network = False, file.treated_as_module(function, name)
    for statement in ir.statements(function.body):
        if statement is until:
            break
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(target.path == name for target in statement.targets):
                found = any(
                    isinstance(part, ir.Call)
                    and (part.method in _TO_GPU or part.keyword("device") is not None)
                    for part in ir.walk(statement.value)
                )
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if (
                call.method in ("cuda", "to")
                and isinstance(call.func, ir.Attr)
                and call.func.base.path == name
            ):
                found = not any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in call.args)
        if network and any(_leaves_gpu(call, name) for call in ir.own_calls(statement)):
            found = False
    return found


def _leaves_gpu(call: ir.Call, name: str) -> bool:
    """`layers[i] = layer.cpu()`."""
    to_host = call.method == "to" and any(
        isinstance(arg, ir.Const) and arg.value == "cpu" for arg in call.args
    )
    return (
        (call.method == "cpu" or to_host) and isinstance(call.func, ir.Attr) and call.func.base.path == name
    )
