"""`torch.load` without a place of which one or the other thing is not shown: best weights loaded beside the network that
trains, optimizers of several ranks, helpers that hand out what they load, a place that is None where there is CUDA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.checkpoints import (
    copies_tensors,
    is_of_optimizer,
    saves_optimizers,
    uses_cuda,
    writes_states,
)
from gpulint.rules.detect.lifetimes.reaching_back import owner_of
from gpulint.rules.detect.lifetimes.suspicion import Suspicion

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import chain_of, derived, is_made_here, is_published, parents_of
from gpulint.analysis.file.lookup import qualified, with_words
from gpulint.analysis.questions.device.placement import on_gpu
from gpulint.analysis.questions.outlives.through_steps import is_held_through_steps
from gpulint.analysis.questions.reached.dead import is_dead
from gpulint.analysis.questions.reached.processes import calling, in_every_process
from gpulint.analysis.questions.size.states import are_small, checkpoint_doubts, ranks_doubts
from gpulint.answers import Answer, Question, left_open, proven

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# What a training's own states go by. Only ever a hint: what is loaded may be anything.
_STATE = re.compile(r"(?i)state|checkpoint|ckpt|weight|best|\.pth|\.th\b|snapshot|resume")
_NO_STATE = re.compile(
    r"(?i)data|feature|embed|cache|vocab|dict_path|token|annot|label|sample|index|config|args|stat(?:s|istics)\b"
)
COST = "the whole checkpoint once more on the GPU, of every process that loads it (522 MiB for a 4-layer language model with AdamW)"


@dataclass(frozen=True, slots=True)
class Loading:
    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call


def unmapped_loads(file: FileAnalysis) -> list[Suspicion]:
    """The loads of a file that leave it to the file they read where its tensors go."""
    loads = list(loadings(file))
    found: list[Suspicion] = []
    done: set[int] = set()
    for load in loads:
        handmade = _none_with_cuda(load)
        if handmade is not None:
            if id(handmade) not in done:
                done.add(id(handmade))
                found.append(_of_handmade(file, handmade))
        elif is_absent(load.call):
            found += _of_absent(file, load, loads)
    return found


def loadings(file: FileAnalysis) -> Iterator[Loading]:
    for function in with_words(file, frozenset({"load"})):
        for statement, call in ir.calls(function.body):
            if (
                call.method == "load"
                and call.args
                and qualified(file, function, call.func.path) == "torch.load"
            ):
                if all(name is not None for name, _ in call.keywords):
                    if not is_dead(file, function, statement) and not is_published(function, call.args[0]):
                        yield Loading(function, statement, call)


def is_absent(call: ir.Call) -> bool:
    location = call.argument(1, "map_location")
    return location is None or (isinstance(location, ir.Const) and location.value is None)


# --- a place that is None where there is CUDA -----------------------------------------------------------------------


def _none_with_cuda(load: Loading) -> ir.Stmt | None:
    """`place = None`, changed only where CUDA is not available; or `None if cuda else "cpu"`."""
    location = load.call.argument(1, "map_location")
    if isinstance(location, ir.Op) and _chooses_none(location):
        return load.stmt
    if not isinstance(location, ir.Name):
        return None
    starts_none = False
    chooses: ir.Stmt | None = None
    for statement, around in _with_branches(load.function.body, ()):
        if isinstance(statement, ir.Assign) and any(t.path == location.id for t in statement.targets):
            if isinstance(statement.value, ir.Op) and _chooses_none(statement.value):
                return statement
            is_none = isinstance(statement.value, ir.Const) and statement.value.value is None
            if (
                is_none
                and len(around) == 1
                and _asks_for_cuda(around[0].test)
                and statement in around[0].body
            ):
                return None if _is_negated(around[0].test) else around[0]
            if is_none and not around:
                starts_none = True
            else:
                chooses = around[0] if len(around) == 1 and _asks_for_no_cuda(around[0].test) else None
    return chooses if starts_none else None


def _chooses_none(value: ir.Op) -> bool:
    """`None if torch.cuda.is_available() else "cpu"`."""
    if value.op != "if" or not _asks_for_cuda(value.operands[0]):
        return False
    chosen = value.operands[2] if _is_negated(value.operands[0]) else value.operands[1]
    return isinstance(chosen, ir.Const) and chosen.value is None


def _asks_for_cuda(test: ir.Expr) -> bool:
    return any(
        isinstance(part, ir.Call) and part.method == "is_available" and "cuda" in (part.func.path or "")
        for part in ir.walk(test)
    )


def _is_negated(test: ir.Expr) -> bool:
    return isinstance(test, ir.Op) and test.op == "not"


def _asks_for_no_cuda(test: ir.Expr) -> bool:
    return _is_negated(test) and _asks_for_cuda(test)


def _with_branches(
    block: list[ir.Stmt], branches: tuple[ir.If, ...]
) -> Iterator[tuple[ir.Stmt, tuple[ir.If, ...]]]:
    """Each statement with the branches that it stands in."""
    for statement in block:
        yield statement, branches
        for inner in statement.blocks():
            below = (*branches, statement) if isinstance(statement, ir.If) else branches
            yield from _with_branches(inner, below)


def _of_handmade(file: FileAnalysis, handmade: ir.Stmt) -> Suspicion:
    return Suspicion(
        handmade,
        "torch.load",
        "where there is CUDA the place is None, which brings the checkpoint back to the GPU it was saved from",
        "the host is chosen only without CUDA; `load_state_dict` copies from there just as well",
        COST,
        (
            proven(Question.DEVICE, "`map_location` is None wherever CUDA is available"),
            saved_from_gpu(file),
        ),
    )


# --- no place at all ------------------------------------------------------------------------------------------------


def _of_absent(file: FileAnalysis, load: Loading, loads: list[Loading]) -> Iterator[Suspicion]:
    restored = list(_restorings(load))
    if restored:
        if all(map(is_of_optimizer, restored)):
            yield from _of_optimizer(file, load)
        else:
            yield from _of_model(file, load, restored, loads)
    elif _is_returned(load):
        yield from _of_helper(file, load, loads)


def _restorings(load: Loading) -> Iterator[ir.Call]:
    """The calls of `load_state_dict` that are given what is loaded, or an entry of it, under whichever name."""
    name = _name_of(load)
    names = derived(load.function, name).names if name is not None else set[str]()
    for _, call in ir.calls(load.function.body):
        if call.method != "load_state_dict" or not isinstance(call.func, ir.Attr) or not copies_tensors(call):
            continue
        given = (*call.args, *(value for _, value in call.keywords))
        parts = (part for value in given for part in ir.walk(value))
        if any(part is load.call or (isinstance(part, ir.Name) and part.id in names) for part in parts):
            yield call


def _name_of(load: Loading) -> str | None:
    if isinstance(load.stmt, ir.Assign) and len(load.stmt.targets) == 1:
        value = load.stmt.value
        while isinstance(value, ir.Sub):
            value = value.base
        target = load.stmt.targets[0]
        if value is load.call and isinstance(target, ir.Name):
            return target.id
    return None


def _of_optimizer(file: FileAnalysis, load: Loading) -> Iterator[Suspicion]:
    if not in_every_process(file, load.function, load.stmt):
        return
    yield Suspicion(
        load.call,
        "torch.load",
        "every rank loads the optimizer's state onto the GPU it was saved from, which is one and the same for all",
        'no `map_location` is given: with "cpu" each rank copies it to its own GPU',
        COST,
        (
            proven(Question.REACHED, "the file is of a program of several processes"),
            saved_from_gpu(file, saves_optimizers, calling(file, load.function)),
        ),
    )


def _of_model(
    file: FileAnalysis, load: Loading, restored: list[ir.Call], loads: list[Loading]
) -> Iterator[Suspicion]:
    """A load that is more than some weights before an inference: in every rank, behind a training, with an optimizer, or
    weights that a name keeps while steps run."""
    ranks, after = in_every_process(file, load.function, load.stmt), _is_beside_training(file, load)
    whole, held = any(map(is_of_optimizer, restored)), _is_held(load, file, restored)
    if not (ranks or after or whole or held) or is_made_here(load.function, load.stmt, load.call.args[0]):
        return
    if not _works_with_gpu(file, load) and not (whole and _speaks_of_devices(file)):
        return
    where = "in every process, " if ranks else ""
    yield Suspicion(
        load.call,
        "torch.load",
        f"without `map_location` the weights are loaded {where}beside the network that lives on the GPU",
        f"they come back to the GPU they were saved from, and `{_name_of(load)}` keeps them there while steps run"
        if held
        else "they come back to the GPU they were saved from, until `load_state_dict` has copied them",
        COST,
        (
            _placed(file, load, restored, loads),
            saved_from_gpu(file, beside=calling(file, load.function)),
            *_much(file, load, restored, ranks, whole, held),
        ),
    )


def _is_held(load: Loading, file: FileAnalysis, restored: list[ir.Call]) -> bool:
    """Whether a name keeps the weights while steps run, of a network that is not seen to be small."""
    name = _name_of(load)
    if name is None or not is_held_through_steps(load.function, load.stmt, name):
        return False
    return not are_small(lambda question: question(file), load.function, _owners(restored))


def _owners(restored: list[ir.Call]) -> list[str]:
    return [call.func.base.path or "" for call in restored if isinstance(call.func, ir.Attr)]


def _speaks_of_devices(file: FileAnalysis) -> bool:
    return any("device" in evidence.words for evidence in file.evidence.values())


def _placed(file: FileAnalysis, load: Loading, restored: list[ir.Call], loads: list[Loading]) -> Answer:
    """Whether the program puts what is restored on a GPU, or says in the same function that it matters."""
    if any(on_gpu(file, load.function, owner, uses_cuda(file)) for owner in _owners(restored) if owner):
        return proven(Question.DEVICE, "the network is moved to a GPU")
    beside = [one for one in loads if one.function is load.function and not is_absent(one.call)]
    if beside:
        return proven(Question.DEVICE, "another load beside it says where its tensors go", beside[0].call)
    return left_open(Question.DEVICE, "whether the network is on a GPU by then is not shown")


def _much(
    file: FileAnalysis, load: Loading, restored: list[ir.Call], ranks: bool, whole: bool, held: bool
) -> list[Answer]:
    def ask(question: Callable[[FileAnalysis], Any]) -> Any:
        return question(file)

    if ranks:
        found = list(ranks_doubts(ask, load.function, _owners(restored)))
        return found or [proven(Question.SIZE, "all ranks load onto one GPU")]
    if held:
        found = list(checkpoint_doubts(ask, load.function, _owners(restored), whole, whole))
        return found or [proven(Question.SIZE, "the network is large")]
    if whole:
        return [left_open(Question.OUTLIVES, "no step is seen to run before it is let go of")]
    return [left_open(Question.SIZE, "how large the network is, is not shown")]


def _of_helper(file: FileAnalysis, load: Loading, loads: list[Loading]) -> Iterator[Suspicion]:
    """`return torch.load(path)`: what becomes of it is the callers' business, where it is put is not."""
    if not _STATE.search(_words_around(load)) or _NO_STATE.search(_words_around(load)):
        return
    placed = next(
        (other for other in loads if other.function is not load.function and not is_absent(other.call)), None
    )
    same = placed is not None and owner_of(placed.function) is owner_of(load.function)
    caller = _caller_on_gpu(file, load.function) if same or not uses_cuda(file) else None
    if not same and not uses_cuda(file) and caller is None:
        return
    answers = [
        left_open(Question.READS, "what the callers do with it is not in sight")
        if caller is None
        else proven(
            Question.READS, f"`{caller.name}` hands it to a network on the GPU", caller, caller.home.filename
        )
    ]
    if same and placed is not None:
        answers.append(
            proven(Question.DEVICE, "another load beside it says where its tensors go", placed.call)
        )
    else:
        answers.append(left_open(Question.DEVICE, "that its tensors were on a GPU is told by its name alone"))
    yield Suspicion(
        load.call,
        "torch.load",
        "what is handed out here comes back to the GPU it was saved from, beside the network it is meant for",
        "no `map_location` is given, and no caller can give one",
        COST,
        tuple(answers),
    )


def _caller_on_gpu(file: FileAnalysis, function: ir.Function) -> ir.Function | None:
    """A function of another file of the project that calls this one, restores something, and works with a GPU."""
    for other in calling(file, function):
        for caller, evidence in other.evidence.items():
            if {function.name, "load_state_dict"} <= evidence.called and uses_cuda(other):
                return caller
    return None


def _words_around(load: Loading) -> str:
    """The names that speak of what is loaded: the function's, and those of the path."""
    said = [load.function.name]
    for part in ir.walk(load.call.args[0]):
        if isinstance(part, ir.Const) and isinstance(part.value, str):
            said.append(part.value)
        elif isinstance(part, (ir.Name, ir.Attr)):
            said.append(part.path or "")
    return " ".join(said)


def _is_returned(load: Loading) -> bool:
    """Whether what is loaded is handed out as it is."""
    if isinstance(load.stmt, ir.Return):
        chain = chain_of(load.call, parents_of(load.stmt))
        return all(
            isinstance(around, (ir.Seq, ir.Sub)) or (isinstance(around, ir.Op) and around.op == "if")
            for around in chain
        )
    name = _name_of(load)
    return name is not None and any(
        isinstance(statement, ir.Return)
        and statement.value is not None
        and (
            statement.value.path == name
            or (isinstance(statement.value, ir.Seq) and any(i.path == name for i in statement.value.items))
        )
        for statement in ir.statements(load.function.body)
    )


def _works_with_gpu(file: FileAnalysis, load: Loading) -> bool:
    """Whether the file uses CUDA, or one that calls the function."""
    return uses_cuda(file) or any(map(uses_cuda, calling(file, load.function)))


def _is_beside_training(file: FileAnalysis, load: Loading) -> bool:
    """Whether a training has run by then: it stands behind one in its function, or in another method of a class that trains,
    the constructor aside."""
    seen = False
    for statement, call in ir.calls(load.function.body):
        if statement is load.stmt:
            break
        seen |= call.method in ("backward", "fit", "train_epoch", "train_one_epoch", "train_step")
    if seen:
        return True
    owner = owner_of(load.function)
    if owner is None or load.function.name == "__init__" or not _STATE.search(_words_around(load)):
        return False
    return "best" in _words_around(load).lower() and any(
        file.evidence[method].backward for method in owner.methods.values()
    )


def saved_from_gpu(
    file: FileAnalysis,
    saved: Callable[[FileAnalysis], bool] = writes_states,
    beside: Sequence[FileAnalysis] = (),
) -> Answer:
    """Whether what is loaded was saved from a GPU: by the file itself, or one `beside` it that calls the function."""
    if not uses_cuda(file) and any("cpu" in evidence.strings for evidence in file.evidence.values()):
        if not any("is_available" in evidence.words for evidence in file.evidence.values()):
            return left_open(Question.DEVICE, "whether the program uses a GPU is not shown")
    if saved(file):
        return proven(Question.DEVICE, "the file saves such states as they are, from where the network is")
    if any(map(saved, beside)):
        return proven(
            Question.DEVICE, "who calls it saves such states as they are, from where the network is"
        )
    return left_open(Question.DEVICE, "whether the checkpoint was saved from a GPU is not shown")
