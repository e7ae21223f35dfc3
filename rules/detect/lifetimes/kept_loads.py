"""What `torch.load` brings to the GPU and a name keeps there beside the network: all of several checkpoints in a list, the
parts of one that an object of the program is given to restore itself, or one that is an attribute of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.checkpoints import copies_tensors, is_of_optimizer, saves_optimizers, uses_cuda
from gpulint.rules.detect.lifetimes.reaching_back import own_name, owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion
from gpulint.rules.detect.lifetimes.unmapped_loads import COST, Loading, is_absent, loadings, saved_from_gpu

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.loaded import entry_of
from gpulint.analysis.file.lookup import names_cuda
from gpulint.analysis.questions.device.placement import is_gpu
from gpulint.analysis.questions.outlives.through_steps import is_held_through_steps
from gpulint.analysis.questions.size.states import are_small, checkpoint_doubts
from gpulint.answers import Answer, Question, left_open, proven, refuted, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOVES = frozenset("load_state_dict eval train cuda to half float parameters state_dict".split())


def kept_loads(file: FileAnalysis) -> list[Suspicion]:
    """The loads of a file that pile up, and those that are taken apart and kept."""
    found: list[Suspicion] = []
    for load in loadings(file) if uses_cuda(file) else ():
        found += _piled(file, load)
        found += _parted(file, load)
        found += _of_object(file, load)
    return found


# --- several in one container -----------------------------------------------------------------------------------------


def _piled(file: FileAnalysis, load: Loading) -> Iterator[Suspicion]:
    placed = _placed(file, load)
    pile = _pile(load) if placed is not None else None
    if pile is None or placed is None:
        return
    since, name = pile
    restored = list(_restored(load.function, name))
    if restored:
        yield Suspicion(
            load.call,
            "torch.load",
            "all of these checkpoints are on the GPU at once, beside the network that they are copied into",
            f"`{name}` keeps them there; from the CPU they are averaged and copied just as well",
            COST,
            (placed, _outlives(load, since, name, restored), _much(file, load, restored)),
        )


def _placed(file: FileAnalysis, load: Loading) -> Answer | None:
    location = load.call.argument(1, "map_location")
    if is_absent(load.call):
        return saved_from_gpu(file)
    if names_cuda(file, load.function, location) or is_gpu(file, load.function, location):
        return proven(Question.DEVICE, "`map_location` is a GPU")
    return None


def _pile(load: Loading) -> tuple[ir.Stmt, str] | None:
    """The container that keeps what each round loads, `states = [torch.load(path) for path in paths]`, with the statement
    that has filled it."""
    value = load.stmt.value if isinstance(load.stmt, ir.Assign) else None
    if isinstance(value, ir.Comp) and value.kind in ("list", "dict"):
        name = targets(load.stmt)[0].path
        mine = _is_loaded(value.elements[-1], load, None)
        return (load.stmt, name) if mine and name is not None else None
    loops = [one for one in ir.loops_around(load.function.body, load.stmt) or () if isinstance(one, ir.For)]
    own = targets(load.stmt)[0].path if value is load.call and len(targets(load.stmt)) == 1 else None
    for statement in ir.statements(loops[-1].body) if loops else ():
        if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.method == "append" and isinstance(call.func, ir.Attr) and len(call.args) == 1:
                if _is_loaded(call.args[0], load, own) and isinstance(call.func.base, ir.Name):
                    return loops[-1], call.func.base.id
    return None


def _is_loaded(value: ir.Expr, load: Loading, name: str | None) -> bool:
    """Whether an expression is what is loaded, or an entry of it."""
    while isinstance(value, ir.Sub):
        value = value.base
    return value is load.call or (name is not None and entry_of(value) == name)


def _restored(function: ir.Function, name: str) -> Iterator[ir.Call]:
    """The calls of `load_state_dict` that are given something made of what a name holds."""
    names = {name}
    for _ in range(3):  # a loop's end comes before its beginning
        for statement in ir.statements(function.body):
            source = statement.value if isinstance(statement, ir.Assign) else None
            source = statement.iterable if isinstance(statement, ir.For) else source
            if source is not None and _speaks_of(source, names):
                names |= {root for target in targets(statement) if (root := _root(target)) is not None}
    for _, call in ir.calls(function.body):
        if call.method == "load_state_dict" and copies_tensors(call):
            if any(
                _speaks_of(given, names) for given in (*call.args, *(value for _, value in call.keywords))
            ):
                yield call


def _speaks_of(expr: ir.Expr, names: set[str]) -> bool:
    return any(isinstance(part, ir.Name) and part.id in names for part in ir.walk(expr))


def _root(target: ir.Expr) -> str | None:
    while isinstance(target, ir.Sub):
        target = target.base
    return target.path


def _outlives(load: Loading, since: ir.Stmt, name: str, restored: list[ir.Call]) -> Answer:
    if is_held_through_steps(load.function, since, name):
        return proven(Question.OUTLIVES, f"`{name}` is there while steps run")
    owners = set(_owners(restored))
    after = False
    for statement in ir.statements(load.function.body):
        if isinstance(statement, ir.Delete) and any(target.path == name for target in statement.targets):
            break
        for call in ir.own_calls(statement) if after else ():
            given = (*call.args, *(value for _, value in call.keywords))
            runs = call.func.path in owners or any(value.path in owners for value in given)
            if runs and call.method not in _MOVES:
                return proven(
                    Question.OUTLIVES, f"`{name}` is there while `{call.method}` runs the network", call
                )
        after |= statement is since
    return left_open(Question.OUTLIVES, "no step is seen to run while they are there")


def _owners(restored: list[ir.Call]) -> list[str]:
    return [call.func.base.path or "" for call in restored if isinstance(call.func, ir.Attr)]


def _much(file: FileAnalysis, load: Loading, restored: list[ir.Call]) -> Answer:
    def ask(question: Callable[[FileAnalysis], Any]) -> Any:
        return question(file)

    owners = _owners(restored)
    if are_small(ask, load.function, owners):
        return refuted(Question.SIZE, "the network is small")
    if not list(checkpoint_doubts(ask, load.function, owners, False)):
        return proven(Question.SIZE, "the network is large")
    return unweighed(
        Question.SIZE, "how large each of them is, and how many there are, the code does not say"
    )


# --- the parts of one, handed to an object ----------------------------------------------------------------------------


def _parted(file: FileAnalysis, load: Loading) -> Iterator[Suspicion]:
    """`(parts, start) = torch.load(path)`, `points.restore(parts)`, and steps that run from there on."""
    if not is_absent(load.call) or not isinstance(load.stmt, ir.Assign) or load.stmt.value is not load.call:
        return
    names = {target.id for target in targets(load.stmt) if isinstance(target, ir.Name)}
    for _, call in ir.calls(load.function.body):
        given = next((arg.path for arg in call.args if arg.path in names), None)
        if given is None or not isinstance(call.func, ir.Attr) or not _restores(file, call.method):
            continue
        if is_held_through_steps(load.function, load.stmt, given):
            what = f"what `{call.func.path}` takes over as it is costs nothing more, until a step replaces it"
            yield Suspicion(
                load.call,
                "torch.load",
                f"`{given}` keeps all that is loaded on the GPU it was saved from, while steps run",
                f"`{call.func.path}` is given it once, and nothing lets go of it afterwards",
                COST,
                (saved_from_gpu(file), left_open(Question.OUTLIVES, what)),
            )
            return


def _restores(file: FileAnalysis, name: str) -> bool:
    """Whether a method of that name of a class of the project restores states."""
    if name == "load_state_dict":
        return False
    methods = [cls.methods[name] for cls in file.module.classes.values() if name in cls.methods]
    if not methods and file.project is not None:
        methods = file.project.methods_named(file.filename, name)
    return any(call.method == "load_state_dict" for method in methods for _, call in ir.calls(method.body))


# --- an attribute of an object -----------------------------------------------------------------------------------------


def _of_object(file: FileAnalysis, load: Loading) -> Iterator[Suspicion]:
    """`self.checkpoint = torch.load(path)`, whose entries are restored once, and which is there as long as the object."""
    path = _attribute_of(load)
    owner = owner_of(load.function)
    placed = _placed(file, load) if path is not None and owner is not None else None
    if path is None or owner is None or placed is None:
        return
    restored = [
        (method, call)
        for method in owner.methods.values()
        for call in _given_from(method, f"{own_name(method)}.{path}")
    ]
    if not restored or any(
        _lets_go(load, method, f"{own_name(method)}.{path}") for method in owner.methods.values()
    ):
        return
    where, first = restored[0]
    owners = _owners([call for method, call in restored if method is where and not is_of_optimizer(call)])
    whole = any(is_of_optimizer(call) for _, call in restored)
    size = list(
        checkpoint_doubts(
            lambda question: question(file), where, owners, whole or saves_optimizers(file), whole
        )
    )
    yield Suspicion(
        load.call,
        path,
        f"`{own_name(load.function)}.{path}` keeps the whole checkpoint on the GPU as long as the object lives",
        f"`{where.name}` copies from it, and nothing lets go of it afterwards",
        COST,
        (
            placed,
            proven(Question.OUTLIVES, "no method of the class binds it anew or deletes it", first),
            *(size or [proven(Question.SIZE, "the network is large")]),
        ),
    )


def _attribute_of(load: Loading) -> str | None:
    """`checkpoint` of `self.checkpoint = torch.load(path)["model"]`."""
    if not isinstance(load.stmt, ir.Assign) or len(load.stmt.targets) != 1:
        return None
    head, _, name = (load.stmt.targets[0].path or "").partition(".")
    value = load.stmt.value
    mine = head == own_name(load.function) and name.isidentifier()
    return name if mine and value is not None and _is_loaded(value, load, None) else None


def _given_from(method: ir.Function, path: str) -> Iterator[ir.Call]:
    """The calls of `load_state_dict` that are given what an attribute holds, or an entry of it."""
    for _, call in ir.calls(method.body):
        if call.method == "load_state_dict" and copies_tensors(call):
            if any(part.path == path for given in call.args for part in ir.walk(given)):
                yield call


def _lets_go(load: Loading, method: ir.Function, path: str) -> bool:
    """Whether a method deletes an attribute, or binds it to something that is no load, be it for the next call."""
    for statement in ir.statements(method.body):
        if any(target.path == path for target in targets(statement)):
            value = statement.value if isinstance(statement, ir.Assign) else None
            if value is None or not any(
                isinstance(part, ir.Call) and part.method == "load" for part in ir.walk(value)
            ):
                if method.name != "__init__" or statement.row > load.stmt.row:
                    return True
        if isinstance(statement, ir.Delete) and any(target.path == path for target in statement.targets):
            return True
    return False
