"""What becomes of what `torch.load` returns: entries taken out, keys renamed, copied into a model or adopted as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.hyperparameters import are_settings

# Keys of a checkpoint whose values are plain: taking them out gives nothing of the GPU away.
_PLAIN = re.compile(
    r"(?i)epoch|step|iter|best|acc|config|args|param|version|name|arch|hyper|seed|score|metric|history|lr$|loss"
)
# Methods whose result is an entry of what is loaded, or the same at another precision.
TAKING = frozenset("get pop state_dict copy float half".split())
_AS_MODULE = frozenset("eval train cuda to cpu parameters named_parameters forward modules".split())
_OF_OTHERS = re.compile(r"(?i)pretrain|base_?net\b|backbone|imagenet")
_PUBLISHED = re.compile(r"download|fetch|cached_path|cached_file|from_url")
# Calls that are told of a file without writing it, or write the program's own states.
_NOT_A_WRITER = re.compile(
    r"^(?:print|info|debug|warning|warn|error|log|write|append|add|exists|isfile|makedirs|mkdir|remove|unlink|copy\w*|"
    r"move|barrier|update|insert|assert\w*)$|save|load"
)

Chain = tuple[ir.Expr, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A read of one of the names, with the expressions around it, innermost first."""

    stmt: ir.Stmt
    expr: ir.Expr
    chain: Chain


@dataclass(slots=True)
class Derived:
    """The names of what is loaded, of its entries, and of these under other keys.

    `made` are names of what some call has made of them; `through` are the statements that bind the others; `entries` says
    that one of the names stands for an entry.
    """

    names: set[str]
    made: set[str] = field(default_factory=set)
    through: list[ir.Stmt] = field(default_factory=list)
    entries: bool = False

    @property
    def all(self) -> set[str]:
        return self.names | self.made


@dataclass(frozen=True, slots=True)
class HostBranch:
    """`whole` is the `if` one of whose branches loads to the CPU what the other loads to the GPU: `stmt` does it."""

    whole: ir.If
    stmt: ir.Stmt

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost with the test: it only asks."""
        return all(
            part.method in ("is_available", "device_count")
            for part in ir.walk(self.whole.test)
            if isinstance(part, ir.Call)
        ) and not any(isinstance(part, ir.Walrus) for part in ir.walk(self.whole.test))


def parents_of(statement: ir.Stmt) -> dict[int, ir.Expr]:
    """For each expression of a statement the one around it, by identity."""
    found: dict[int, ir.Expr] = {}
    for expr in ir.own_parts(statement):
        for child in expr.children():
            found[id(child)] = expr
    return found


def chain_of(expr: ir.Expr, parents: dict[int, ir.Expr]) -> Chain:
    """The expressions around an expression, innermost first."""
    found: list[ir.Expr] = []
    current = parents.get(id(expr))
    while current is not None:
        found.append(current)
        current = parents.get(id(current))
    return tuple(found)


def derived(function: ir.Function, name: str) -> Derived:
    """The names through which a function has what it has loaded."""
    found = Derived({name})
    for _ in range(2):  # a loop's end comes before its beginning
        for statement in ir.statements(function.body):
            if isinstance(statement, ir.Assign) and statement.value is not None:
                names = {target.id for target in statement.targets if isinstance(target, ir.Name)}
                if names:
                    _derive(found, statement, statement.value, names)
            elif isinstance(statement, ir.For):
                found.made |= _refilled(found, statement)
            elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
                found.made |= _merged_into(found, statement.value) - found.names
    return found


def _derive(found: Derived, statement: ir.Stmt, value: ir.Expr, names: set[str]) -> None:
    source = _source_of(value)
    if source is not None and source in found.all:
        (found.names if source in found.names else found.made).update(names)
        found.through.append(statement)
        found.entries |= not isinstance(value, ir.Name)
    elif isinstance(value, ir.Comp) and _renames(found, value):
        found.names |= names
        found.through.append(statement)
        found.entries |= entry_of(_items_of(value.clauses[0][1])) != _items_of(value.clauses[0][1]).path
    elif isinstance(value, ir.Call) and value.method not in ("load_state_dict", "load"):
        if any(entry_of(argument) in found.all for argument in value.args):
            found.made |= names - found.names


def entry_of(value: ir.Expr | None) -> str | None:
    """`ckpt` of `ckpt["model"]`, `ckpt.get("model")`, `ckpt["ema"]["params"]` and `ckpt["model"].state_dict()`."""
    while value is not None and not isinstance(value, ir.Name):
        if isinstance(value, ir.Sub):
            value = value.base
        elif isinstance(value, ir.Call) and value.method in TAKING and isinstance(value.func, ir.Attr):
            value = value.func.base
        else:
            return None
    return value.id if value is not None else None


def _source_of(value: ir.Expr) -> str | None:
    """The same for `ckpt["model"] if "model" in ckpt else ckpt`."""
    if isinstance(value, ir.Op) and value.op == "if":
        sources = {entry_of(branch) for branch in value.operands[1:]}
        return sources.pop() if len(sources) == 1 else None
    return entry_of(value)


def _items_of(iterable: ir.Expr) -> ir.Expr:
    """`weights` of `weights.items()`, `list(weights.items())`."""
    while isinstance(iterable, ir.Call) and isinstance(iterable.func, ir.Name) and len(iterable.args) == 1:
        iterable = iterable.args[0]
    if isinstance(iterable, ir.Call) and isinstance(iterable.func, ir.Attr) and iterable.method == "items":
        return iterable.func.base
    return iterable


def _renames(found: Derived, comp: ir.Comp) -> bool:
    """`{key.removeprefix("module."): value for key, value in weights.items()}`."""
    target, iterable, _ = comp.clauses[0]
    if comp.kind != "dict" or len(comp.clauses) != 1 or entry_of(_items_of(iterable)) not in found.names:
        return False
    value = comp.elements[-1]
    return isinstance(value, ir.Name) and any(part.path == value.id for part in ir.walk(target))


def _refilled(found: Derived, loop: ir.For) -> set[str]:
    """`for key, value in weights.items(): renamed[key[7:]] = value`."""
    if entry_of(_items_of(loop.iterable)) not in found.all:
        return set()
    variables = {part.path for part in ir.walk(loop.target)}
    return {
        target.base.id
        for statement in ir.statements(loop.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        for target in statement.targets
        if isinstance(target, ir.Sub)
        and isinstance(target.base, ir.Name)
        and target.base.id not in found.names
        if any(part.path in variables for part in ir.walk(statement.value) if part.path)
    }


def _merged_into(found: Derived, call: ir.Call) -> set[str]:
    """`state` of `state.update(weights)`: a network's own state with what is loaded in place of its entries."""
    if call.method != "update" or not isinstance(call.func, ir.Attr) or len(call.args) != 1:
        return set()
    merged = entry_of(_items_of(call.args[0])) in found.all
    return {call.func.base.id} if merged and isinstance(call.func.base, ir.Name) else set()


def uses_of(function: ir.Function, names: set[str], binding: ir.Stmt) -> Iterator[Use]:
    """Every read of one of the names after the binding."""
    after = False
    for statement in ir.statements(function.body):
        if statement is binding:
            after = True
            continue
        if not after:
            continue
        parents: dict[int, ir.Expr] | None = None
        for expr in ir.own_parts(statement):
            if isinstance(expr, ir.Name) and expr.id in names:
                if isinstance(statement, ir.Assign) and expr in statement.targets:
                    continue
                if parents is None:
                    parents = parents_of(statement)
                yield Use(statement, expr, chain_of(expr, parents))


def lives_through_loop(
    function: ir.Function, binding: ir.Stmt, name: str, trains: Callable[[ir.Call], bool]
) -> bool:
    """Whether the function trains or infers after the loading, in a loop of its own or by a call that `trains`, while the name
    still holds all of it.
    What a script binds at its top is there until it ends. What another branch binds anew, or a later one may, is not let go of.
    """
    after = False
    always = _blocks_around(function.body, binding)
    for statement in ir.statements(function.body):
        if statement is binding:
            after = True
        elif after:
            if isinstance(statement, (ir.For, ir.While)) and (steps(statement) or runs_loader(statement)):
                return True
            if any(map(trains, ir.own_calls(statement))):
                return True
            ended = statement.targets if isinstance(statement, ir.Delete) else _assigned(statement)
            if id(statement) in always and any(target.path == name for target in ended):
                return False
    return after and function.name == "<module>"


def _assigned(statement: ir.Stmt) -> list[ir.Expr]:
    return targets(statement) if isinstance(statement, ir.Assign) else []


def _blocks_around(body: list[ir.Stmt], wanted: ir.Stmt) -> set[int]:
    """The statements of the blocks that a statement stands in, and of what they go into with a `with` or `try`: who comes by
    it comes by those."""
    found: set[int] = set()
    for block in ir.every_block(body):
        if any(inner is wanted for inner in ir.statements(block)):
            found |= _reached_always(block)
    return found


def _reached_always(block: list[ir.Stmt]) -> set[int]:
    found = set(map(id, block))
    for statement in block:
        if isinstance(statement, (ir.With, ir.Try)):
            found |= _reached_always(statement.body)
    return found


def runs_loader(loop: ir.For | ir.While) -> bool:
    """Whether a loop goes through a loader: `for images, labels in test_loader:`."""
    return isinstance(loop, ir.For) and any("loader" in (part.path or "") for part in ir.walk(loop.iterable))


def steps(loop: ir.For | ir.While) -> bool:
    """Whether a loop trains, or calls what trains or evaluates: `loss.backward()`, `train_one_epoch(model, …)`."""
    return any(
        call.method in ("backward", "step")
        or re.search(r"train|eval|valid|infer|predict|generate", call.method)
        for _, call in ir.calls(loop.body)
    )


def is_plain(use: Use, found: Derived) -> bool:
    """Whether a use does the same with tensors on the CPU."""
    if use.stmt in found.through:
        return True
    if any(isinstance(around, ir.Call) and around.method == "load_state_dict" for around in use.chain):
        return True
    around = use.chain[0] if use.chain else None
    if isinstance(around, ir.Sub) and around.base is use.expr:
        return _is_plain_key(around.index)
    return isinstance(around, ir.Op) and around.op in ("in", "not in", "is", "is not")


def _is_plain_key(index: ir.Expr) -> bool:
    return isinstance(index, ir.Const) and isinstance(index.value, str) and bool(_PLAIN.search(index.value))


def is_adopted(function: ir.Function, use: Use, found: Derived) -> bool:
    """Whether what is loaded becomes a part of an object, or is itself the model: on the CPU it would stay there."""
    if use.expr.path in found.made:
        return False
    for around in use.chain:
        if isinstance(around, ir.Call) and (around.method == "setattr" or _fills_object(around)):
            return True
    statement = use.stmt
    if isinstance(statement, ir.For) and entry_of(_items_of(statement.iterable)) == use.expr.path:
        if any(
            call.method in ("setattr", "__setattr__") or _fills_object(call)
            for _, call in ir.calls(statement.body)
        ):
            return True
    if isinstance(statement, ir.Assign) and entry_of(statement.value) == use.expr.path:
        if any(isinstance(target, ir.Attr) for target in statement.targets):
            value = statement.value
            key = value.index if isinstance(value, ir.Sub) else None
            if isinstance(value, ir.Call) and value.method in ("get", "pop") and value.args:
                key = value.args[0]
            if (key is None or not _is_plain_key(key)) and not are_settings(function, statement):
                return True
    return _is_model(use)


def _fills_object(call: ir.Call) -> bool:
    """`self.__dict__.update(…)`, `vars(self).update(…)`."""
    if call.method != "update" or not isinstance(call.func, ir.Attr):
        return False
    base = call.func.base
    return (isinstance(base, ir.Attr) and base.attr == "__dict__") or (
        isinstance(base, ir.Call) and base.method == "vars"
    )


def _is_model(use: Use) -> bool:
    """`ckpt["model"].eval()`, `model = ckpt["model"]; model(x)`: a whole module was pickled."""
    previous = use.expr
    for around in use.chain:
        if isinstance(around, ir.Sub) and around.base is previous:
            previous = around
        elif isinstance(around, ir.Call) and around.func is previous:
            return True
        else:
            return isinstance(around, ir.Attr) and around.base is previous and around.attr in _AS_MODULE
    return False


# --- where the file comes from -----------------------------------------------------------------------------------


def is_published(function: ir.Function, source: ir.Expr) -> bool:
    """A file that was not written by a training of this program: it is downloaded, or comes with the package."""
    names = {part.id for part in ir.walk(source) if isinstance(part, ir.Name)}
    values = [source]
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            if any(target.path in names for target in statement.targets):
                values.append(statement.value)
    return any(
        (isinstance(part, ir.Call) and _PUBLISHED.search(part.method)) or part.path == "__file__"
        for value in values
        for part in ir.walk(value)
    )


def is_of_others(source: ir.Expr) -> bool:
    """A file that by its name others have trained, who may have saved it from anywhere: `args.pretrained`, `basenet`."""
    named = [part.attr if isinstance(part, ir.Attr) else part.path or "" for part in ir.walk(source)]
    said = [
        part.value for part in ir.walk(source) if isinstance(part, ir.Const) and isinstance(part.value, str)
    ]
    return any(_OF_OTHERS.search(one) for one in (*named, *said))


def is_made_here(function: ir.Function, statement: ir.Stmt, source: ir.Expr) -> bool:
    """Whether the function has some call write the file just before: nothing is known of what a converter writes."""
    if not isinstance(source, ir.Name):
        return False
    for earlier in _before(function.body, statement) or ():
        if isinstance(earlier, ir.ExprStmt) and isinstance(earlier.value, ir.Call):
            call = earlier.value
            given = (*call.args, *(value for _, value in call.keywords))
            if any(value.path == source.id for value in given) and not _NOT_A_WRITER.search(call.method):
                return True
    return False


def _before(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt] | None:
    """The statements that may have run when the wanted one begins; None where it is not in the block."""
    passed: list[ir.Stmt] = []
    for statement in block:
        if statement is wanted:
            return passed
        for inner in statement.blocks():
            found = _before(inner, wanted)
            if found is not None:
                return passed + found
        passed += ir.statements([statement])
    return None


def host_branch(function: ir.Function, statement: ir.Stmt, call: ir.Call) -> HostBranch | None:
    """The other branch of the `if` that a load is all of, where it loads the same file to the CPU."""
    for whole in ir.statements(function.body):
        if isinstance(whole, ir.If) and len(whole.body) == len(whole.orelse) == 1:
            if statement in (whole.body[0], whole.orelse[0]):
                other = whole.orelse[0] if whole.body[0] is statement else whole.body[0]
                return HostBranch(whole, other) if _loads_to_host(other, statement, call) else None
    return None


def _loads_to_host(other: ir.Stmt, statement: ir.Stmt, call: ir.Call) -> bool:
    if not isinstance(other, ir.Assign) or not isinstance(statement, ir.Assign):
        return False
    value = other.value
    if not isinstance(value, ir.Call) or value.func.path != call.func.path or not value.args:
        return False
    if [target.path for target in other.targets] != [target.path for target in statement.targets]:
        return False
    location = value.argument(1, "map_location")
    if isinstance(location, ir.Call) and location.method == "device" and location.args:
        location = location.args[0]
    return isinstance(location, ir.Const) and location.value == "cpu" and _same(value.args[0], call.args[0])


def _same(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether two expressions are written alike."""
    if type(one) is not type(other) or one.path != other.path:
        return False
    if isinstance(one, ir.Const) and isinstance(other, ir.Const):
        return bool(one.value == other.value)
    mine, theirs = one.children(), other.children()
    return len(mine) == len(theirs) and all(map(_same, mine, theirs))
