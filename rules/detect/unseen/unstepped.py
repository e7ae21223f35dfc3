"""Networks that a step goes backward through to what it is about, a patch, a picture, a latent, another network, and that
nobody steps: their weights want gradients all the same, which each backward computes and `.grad` holds.

Their input wants a gradient, so `no_grad` is no cure: they have to be frozen, once, before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.auxiliary import is_optimizer, optimized
from gpulint.rules.detect.unseen.sights import Sight, sights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs
from gpulint.analysis.code.reading import unwrapped
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.lookup import called_in_project, names_only_cpu, qualified
from gpulint.analysis.questions.backward.toward_backward import passed_to_backward
from gpulint.analysis.questions.device.by_constant import everything_on_cpu, speaks_of_no_device
from gpulint.analysis.questions.grad.frozen_networks import classes_bound, is_frozen
from gpulint.analysis.questions.grad.no_graph import is_weightless
from gpulint.analysis.questions.grad.stepping import is_library_network, shows_weights, unstepped
from gpulint.analysis.questions.size.forwards import ForwardSizes
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.roles import NETWORK, RUNS_NOT
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, left_open, proven, refuted, until_refuted, unweighed

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST = 4  # open questions: of a claim that leaves more, nothing is said
_BOOKKEEPING = frozenset(
    "eval train to parameters state_dict load_state_dict cuda half modules zero_grad cpu float generate print len".split()
)


@dataclass(frozen=True, slots=True)
class Unstepped:
    """The call by which a step runs such a network. `wanted`: what its backward is for."""

    function: ir.Function
    call: ir.Call
    path: str
    wanted: str
    answers: tuple[Answer, ...]

    @property
    def holds(self) -> bool:
        verdicts = [answer.verdict for answer in self.answers]
        return Verdict.REFUTED not in verdicts and verdicts.count(Verdict.OPEN) <= _MOST


@dataclass(frozen=True, slots=True)
class _Aim:
    """What a function goes backward for: tensors, by their paths, or networks."""

    tensors: frozenset[str] = frozenset()
    networks: frozenset[str] = frozenset()
    is_stepped: bool = True  # by an optimizer, and not by hand

    @property
    def in_words(self) -> str:
        return " and ".join(f"`{path}`" for path in sorted(self.tensors or self.networks)[:2])


def unstepped_networks(file: FileAnalysis) -> list[Unstepped]:
    """The calls of such networks in one file, one for each network of a function, told or not."""
    found: list[Unstepped] = []
    for function in file.module.functions if file.uses_torch else ():
        called = file.evidence[function].called
        if not any(map(runs_backward, called)) or function.name in ("forward", "backward"):
            continue
        if _names_inputs(function) or file.grad_at_entry(function) is Grad.DISABLED:
            continue
        aim = _aim(file, function)
        found += _of(file, function, aim) if aim is not None else ()
    return found


def _names_inputs(function: ir.Function) -> bool:
    """`loss.backward(inputs=[x])`, which makes gradients of nothing else."""
    return any(
        runs_backward(call.method) and call.keyword("inputs") is not None
        for _, call in ir.calls(function.body)
    )


# --- what it goes backward for ---------------------------------------------------------------------------------------


def _aim(file: FileAnalysis, function: ir.Function) -> _Aim | None:
    """What the optimizers that a function steps are given; without any, the tensors whose gradients it asks for and reads. None
    where one of them is not seen."""
    around = [scope for scope in function.scopes() if scope is function or scope is not file.module.body]
    stepped = {
        call.func.base.path
        for one in around
        for _, call in ir.calls(one.body)
        if call.method == "step" and isinstance(call.func, ir.Attr) and _is_stepped(call.func.base.path)
    }
    if not stepped:
        read = _read_gradients(function)
        return _Aim(tensors=frozenset(read), is_stepped=False) if read else None
    tensors: set[str] = set()
    networks: set[str] = set()
    beside = function.cls.methods.values() if function.cls is not None else ()
    for path in stepped:
        made = [
            (scope, value)
            for scope in dict.fromkeys((*around, *beside, file.module.body))
            for statement in ir.statements(scope.body)
            for target, value in (pairs(statement) if isinstance(statement, ir.Assign) else ())
            if target.path == path and isinstance(value, ir.Call)
        ]
        if not made or not all(is_optimizer(file, value) for _, value in made):
            return None
        for scope, value in made:
            given = _tensors_of(scope, value)
            owners = optimized(value, _bound(scope))
            if not given and not owners:
                return None
            tensors |= given
            networks |= owners
    if networks:
        return _Aim(networks=frozenset(networks - {"self"})) if "self" not in networks else None
    return _Aim(tensors=frozenset(tensors))


def _is_stepped(path: str | None) -> bool:
    return path is not None and not any(
        word in path.lower() for word in ("sched", "scaler", "env", "profil", "prof")
    )


def _bound(function: ir.Function) -> dict[str, ir.Expr]:
    return {
        target.path: value
        for statement in ir.statements(function.body)
        for target, value in (pairs(statement) if isinstance(statement, ir.Assign) else ())
        if target.path is not None
    }


def _tensors_of(scope: ir.Function, made: ir.Call) -> set[str]:
    """`patch` of `Adam([patch])`, of `Adam([{"params": patch}])`, and of `params = [patch]; Adam(params)`."""
    given = made.argument(0, "params")
    if given is not None and given.path is not None:
        given = _bound(scope).get(given.path, given)
    items = given.items if isinstance(given, ir.Seq) else ()
    found: set[str] = set()
    for item in items:
        values = (
            [v for k, v in item.pairs if isinstance(k, ir.Const) and k.value == "params"]
            if isinstance(item, ir.DictDisplay)
            else [item]
        )
        for value in values:
            inner = value.items if isinstance(value, ir.Seq) else (value,)
            if not all(one.path is not None for one in inner):
                return set()
            found |= {one.path for one in inner if one.path is not None}
    return found


def _read_gradients(function: ir.Function) -> set[str]:
    """The tensors that a function makes want a gradient, `x.requires_grad_()`, and whose gradient it reads."""
    read: set[str | None] = set()
    asked: set[str | None] = set()
    for statement in ir.statements(function.body):
        bound = statement.targets if isinstance(statement, ir.Assign) else ()
        paths = {target.path for target in bound}
        asked |= {t.base.path for t in bound if isinstance(t, ir.Attr) and t.attr == "requires_grad"}
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Attr) and part.attr == "grad" and part not in bound:
                read.add(part.base.path)
            elif isinstance(part, ir.Call) and part.method == "requires_grad_":
                asked |= paths | ({part.func.base.path} if isinstance(part.func, ir.Attr) else set())
            elif isinstance(part, ir.Call) and part.keyword("requires_grad") is not None:
                asked |= paths
    return {path for path in read & asked if path is not None}


# --- the networks in between -----------------------------------------------------------------------------------------


def _of(file: FileAnalysis, function: ir.Function, aim: _Aim) -> Iterator[Unstepped]:
    around = sights(file, function)
    runs: dict[int, tuple[Sight, ir.Call, str]] = {}
    makers: set[int] = set()
    for sight in around:
        for call in ir.own_calls(sight.statement):
            path = call.func.path or ""
            if any(f"{path}.".startswith(f"{one}.") for one in aim.networks):
                makers.add(id(call))
            elif sight.grad is not Grad.DISABLED and (network := _network_of(file, function, call)):
                runs[id(call)] = (sight, call, network)
    if not runs or not (aim.tensors or makers):
        return
    through = passed_to_backward(file, function, aim.tensors, frozenset(makers), frozenset(runs))
    told: set[str] = set()
    for one in runs.values():
        sight, call, path = one
        if id(call) in through and path not in told:
            told.add(path)
            answers = until_refuted(_asked(file, function, sight, call, path, aim))
            yield Unstepped(function, call, path, aim.in_words, answers)


def _network_of(file: FileAnalysis, function: ir.Function, call: ir.Call) -> str:
    """The network that a call runs: what is called, what a method is of, or what is handed to who runs it."""
    if call.method in _BOOKKEEPING or RUNS_NOT.search(call.method) or not (call.args or call.keywords):
        return ""
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    own = function.params[0].name if function.cls is not None and function.params else ""
    known = called_in_project(function, call) is not None or qualified(file, function, call.func.path)
    runs = [
        path.removesuffix(".forward").removesuffix(".module")
        for path in (None if known else unwrapped(call.func).path, owner if owner != own else None)
        if path is not None
    ]
    if call.method == "forward" and owner not in (None, "super", *file.module.imports):
        return owner or ""
    found = [path for path in runs if _is_network(file, function, path)]
    given = [arg.path for arg in call.args if arg.path is not None and _is_network(file, function, arg.path)]
    if len(given) == 1 and len(call.args) > 1 and not any(_shows_weights(file, function, p) for p in found):
        return given[0]  # who runs it has no weights that are seen
    return found[0] if found else ""


def _shows_weights(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    return any(
        isinstance(one, ClassInfo) and shows_weights(one) for one in classes_bound(file, function, path)
    )


def _is_network(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether something is treated as a network, or made as one, that may have weights: a loss has none, as a rule."""
    classes = [one for one in classes_bound(file, function, path) if isinstance(one, ClassInfo)]
    if _shows_weights(file, function, path):
        return True
    last = path.rpartition(".")[2]
    if LOSSY.search(last) or (classes and (not NETWORK.search(last) or all(map(is_weightless, classes)))):
        return False
    facts = file.facts.get(function)
    known = {one.module.path for one in (facts.forwards if facts else ()) if one.module.proven}
    return path in known or file.treated_as_module(function, path) or is_library_network(function, path)


def _asked(
    file: FileAnalysis, function: ir.Function, sight: Sight, call: ir.Call, path: str, aim: _Aim
) -> Iterator[Answer]:
    yield proven(Question.BACKWARD, f"backward goes through it to {aim.in_words}")
    if any(f"{one}.".startswith(f"{path}.") for one in (*aim.tensors, *aim.networks)):
        yield refuted(Question.TRAINED, f"a part of `{path}` is what is stepped")
    if is_frozen(file, function, path) or file.is_frozen(function, path):
        yield refuted(Question.TRAINED, f"`{path}` is frozen")
    if sight.grad is Grad.ENABLED:
        yield proven(Question.GRAD, "grad is on here")
    else:
        yield left_open(Question.GRAD, "whether grad is on cannot be seen")
    yield from unstepped(file, function, path)
    if not sight.loops and not aim.is_stepped:
        yield unweighed(Question.REPEATS, "nothing here repeats it: it may run once, for a look")
    if names_only_cpu(file) or everything_on_cpu(file):
        yield refuted(Question.DEVICE, "the file names no device but the CPU")
    elif speaks_of_no_device(file):
        yield left_open(Question.DEVICE, "nothing in the program says that a GPU is used")
    classes = classes_bound(file, function, path)
    yield from ForwardSizes(file).of_step(function, call, path, classes[0] if len(classes) == 1 else None)
