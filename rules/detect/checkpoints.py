"""Training checkpoints that `torch.load` brings back to the GPU they were saved from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.loaded import (
    TAKING,
    Derived,
    HostBranch,
    Use,
    chain_of,
    derived,
    host_branch,
    is_adopted,
    is_made_here,
    is_plain,
    is_published,
    parents_of,
    uses_of,
)
from gpulint.analysis.file.lookup import names_cuda, qualified, with_words
from gpulint.analysis.questions.device.host_copies import host_copies_saved
from gpulint.analysis.questions.device.placement import is_gpu, on_gpu
from gpulint.analysis.questions.outlives.through_steps import Receiver, is_held_through_steps, receivers
from gpulint.analysis.questions.reached.dead import is_dead
from gpulint.analysis.questions.reached.processes import by_one_process

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_OPTIMIZER = re.compile(r"(?i)optim|(?:^|[._])opt(?:_?[a-z])?$")
_NUMBERS_ONLY = re.compile(r"(?i)sched|scaler|sampler|loader|amp$|meter|transform$|(?:^|[._])lr")


@dataclass(slots=True)
class Load:
    """`torch.load` of a training checkpoint onto the GPU. `location` is the given `map_location`, None where none is.

    `plain_uses` says that what is loaded only goes into `load_state_dict`, or is a number; `held`, that a name keeps it;
    `stays`, that it does so through a loop of steps, here or in a caller; `brings_optimizer`, that an optimizer is restored from it too; `by_every_rank`, that all ranks bring it back to one GPU. `host_branch` is the branch of the same `if` that loads the same file to the CPU.
    """

    function: ir.Function
    stmt: ir.Stmt
    call: ir.Call
    location: ir.Expr | None
    plain_uses: bool
    held: bool = True
    host_branch: HostBranch | None = None
    stays: bool = False
    brings_optimizer: bool = False
    by_every_rank: bool = False
    owners: tuple[str, ...] = ()  # the networks that it is restored to
    formatted: bool = False  # one of its entries is, not all of it: a training's checkpoint
    given: tuple[Receiver, ...] = ()  # the callers that get the checkpoint too


@dataclass(slots=True)
class _Candidate:
    """A load that is restored, before it is known whether its file holds tensors of a GPU."""

    load: Load
    restored: list[ir.Call]  # the calls of `load_state_dict`
    formatted: bool  # an entry of what is loaded is restored: the file is a checkpoint, not bare weights


_RANKS = frozenset({"init_process_group", "DistributedDataParallel", "local_rank", "LOCAL_RANK"})
_OWN_LOADING = re.compile(rb"def (?:_load_from_state_dict|load_state_dict|set_extra_state)\(")


def restores_its_own_way(file: FileAnalysis) -> bool:
    """Whether a class of the project has a `load_state_dict` of its own, which may keep tensors as they are."""
    if any(
        _OWN_LOADING.search(f"def {name}(".encode())
        for cls in file.module.classes.values()
        for name in cls.methods
    ):
        return True
    return file.project is not None and file.project.contains(file.filename, _OWN_LOADING)


def loads(file: FileAnalysis) -> list[Load]:
    """The loads, of a file that uses CUDA, that hand what they load to a model or an optimizer on the GPU."""
    found: list[_Candidate] = []
    for function in with_words(file, frozenset({"load"})):
        for statement, call in ir.calls(function.body):
            if call.method == "load" and qualified(file, function, call.func.path) == "torch.load":
                candidate = _candidate(file, function, statement, call)
                if candidate is not None and not is_dead(file, function, statement):
                    found.append(candidate)
    if found and host_copies_saved(file) and not writes_states(file):
        found = [one for one in found if one.load.location is not None]
    if not found:
        return []
    trained = {place for candidate in found if candidate.formatted for place in _places(candidate)}
    writes = any(candidate.load.location is None for candidate in found) and writes_states(file)
    several = any(evidence.words & _RANKS for evidence in file.evidence.values())
    for candidate in found:
        alone = by_one_process(candidate.load.function, candidate.load.stmt)
        candidate.load.by_every_rank = several and candidate.load.location is None and not alone
        candidate.load.formatted = candidate.formatted
        networks = (one for one in candidate.restored if not is_of_optimizer(one))
        candidate.load.owners = tuple(dict.fromkeys(filter(None, map(_owner, networks))))
    return [
        candidate.load
        for candidate in found
        if candidate.load.location is not None
        or (
            (
                candidate.formatted
                or candidate.load.host_branch is not None
                or writes
                or not trained.isdisjoint(_places(candidate))
            )
            and _fits_gpu(file, candidate)
        )
    ]


def _places(candidate: _Candidate) -> Iterator[tuple[ir.Class | ir.Function, str]]:
    """What is restored: attributes of the class, or names of the function."""
    function = candidate.load.function
    for call in candidate.restored:
        owner = _owner(call)
        if owner is not None:
            yield (function.cls if function.cls is not None and "." in owner else function), owner


def _fits_gpu(file: FileAnalysis, candidate: _Candidate) -> bool:
    """Whether the model that is restored is one that the program trains or runs on a GPU."""
    load = candidate.load
    if load.host_branch is not None:
        return True
    if is_made_here(load.function, load.stmt, load.call.args[0]):
        return False
    owners = [owner for owner in map(_owner, candidate.restored) if owner is not None]
    with_cuda = uses_cuda(file)
    if with_cuda and any(map(is_of_optimizer, candidate.restored)):
        return True
    if any(on_gpu(file, load.function, owner, with_cuda) for owner in owners):
        return True
    return any(
        on_gpu(one.function.home, one.function, other, uses_cuda(one.function.home))
        for one in load.given
        for other in one.others
    )


def _owner(restoring: ir.Call) -> str | None:
    """`model` of `model.load_state_dict(…)`, also of `model.module.load_state_dict(…)`."""
    return restoring.func.base.path if isinstance(restoring.func, ir.Attr) else None


def is_of_optimizer(restoring: ir.Call) -> bool:
    """Whether an optimizer is restored: unlike a model it takes over the tensors that are on its device already."""
    return bool(_OPTIMIZER.search(_owner(restoring) or ""))


def writes_states(file: FileAnalysis) -> bool:
    """Whether the file saves a `state_dict()` as it is: what it loads is then what a program like it has written."""
    return next(_saved_states(file), None) is not None


def saves_optimizers(file: FileAnalysis) -> bool:
    """Whether the `state_dict()` of an optimizer is among what the file saves."""
    return any(map(is_of_optimizer, _saved_states(file)))


def _saved_states(file: FileAnalysis) -> Iterator[ir.Call]:
    """The calls of `state_dict()` in what the file hands to something that saves, as it is or under a name."""
    for function in with_words(file, frozenset({"state_dict"})):
        for _, call in ir.calls(function.body):
            if "save" in call.method:
                for value in _made_of(function, (*call.args, *(value for _, value in call.keywords))):
                    parts = list(ir.walk(value))
                    if not any(isinstance(part, ir.Call) and part.method == "cpu" for part in parts):
                        yield from (p for p in parts if isinstance(p, ir.Call) and p.method == "state_dict")


def _made_of(function: ir.Function, values: tuple[ir.Expr, ...]) -> Iterator[ir.Expr]:
    """The values, and what their names are bound to, or to parts of them: `state = {…}`, `state["epoch"] = …`."""
    queue, seen = list(values), set[str]()
    while queue:
        value = queue.pop()
        yield value
        names = {part.id for part in ir.walk(value) if isinstance(part, ir.Name)} - seen
        seen |= names
        for statement in ir.statements(function.body) if names else ():
            bound = statement.value if isinstance(statement, ir.Assign) else None
            if isinstance(statement, ir.For):
                bound = statement.iterable
            if bound is not None and any(_root_of(target) in names for target in targets(statement)):
                queue.append(bound)


def _root_of(target: ir.Expr) -> str | None:
    while isinstance(target, ir.Sub):
        target = target.base
    return target.path


def _candidate(
    file: FileAnalysis, function: ir.Function, statement: ir.Stmt, call: ir.Call
) -> _Candidate | None:
    if not call.args or any(name is None for name, _ in call.keywords) or len(call.args) > 2:
        return None
    location = call.argument(1, "map_location")
    absent = location is None or (isinstance(location, ir.Const) and location.value is None)
    always = names_cuda(file, function, location) or _is_cuda_attribute(file, location)
    if not absent and not always and not is_gpu(file, function, location):
        return None
    if is_published(function, call.args[0]):
        return None
    location = None if absent else location
    parents = parents_of(statement)
    direct = _goes_into_state(call, parents)
    if direct is not None:
        if (not absent and not (always and writes_states(file))) or is_of_optimizer(direct):
            return None
        load = Load(function, statement, call, location, True, held=False)
        return _Candidate(load, [direct], parents.get(id(call)) is not direct)
    candidate = _under_a_name(function, statement, call, location)
    # `map_location=device` is how programs say that they want a checkpoint where the model is: a moment's copy is meant so.
    if candidate is None or absent or candidate.load.stays or (always and _is_of_training(file, candidate)):
        return candidate
    return None


def _is_of_training(file: FileAnalysis, candidate: _Candidate) -> bool:
    """Whether a file is a training's own: an optimizer is restored from it, or the program writes such states. Weights that
    a constructor loads for inference are gone before any forward, and who names a GPU for them means it."""
    return any(map(is_of_optimizer, candidate.restored)) or writes_states(file)


def _under_a_name(
    function: ir.Function, statement: ir.Stmt, call: ir.Call, location: ir.Expr | None
) -> _Candidate | None:
    path, entry = _name_of(statement, call)
    if path is None or "quantiz" in path:  # quantized weights are the CPU's
        return None
    found = derived(function, path)
    uses = list(uses_of(function, found.all, statement))
    if any(is_adopted(function, use, found) for use in uses):
        return None
    restoring = [(use, restored) for use in uses if (restored := _restoring(use)) is not None]
    if all(is_of_optimizer(restored) for _, restored in restoring):
        return None
    plain = all(is_plain(use, found) for use in uses if use.expr.path in found.names)
    plain = plain and not any(use.expr.path in found.made for use, _ in restoring)
    load = Load(function, statement, call, location, plain)
    if location is None:
        load.host_branch = host_branch(function, statement, call)
    load.given = tuple(one for one in receivers(function, path) if not _is_adopted_by(one))
    load.stays = is_held_through_steps(function, statement, path) or any(one.keeps for one in load.given)
    load.brings_optimizer = any(is_of_optimizer(restored) for _, restored in restoring) or any(
        is_of_optimizer(restored) for one in load.given for restored in _restored_by(one)
    )
    formatted = entry or found.entries or any(_is_entry(use) for use in uses)
    return _Candidate(load, [restored for _, restored in restoring], formatted)


def _uses_by(receiver: Receiver) -> tuple[Derived, list[Use]]:
    found = derived(receiver.function, receiver.name)
    return found, list(uses_of(receiver.function, found.all, receiver.stmt))


def _is_adopted_by(receiver: Receiver) -> bool:
    found, uses = _uses_by(receiver)
    return any(is_adopted(receiver.function, use, found) for use in uses)


def _restored_by(receiver: Receiver) -> Iterator[ir.Call]:
    """The calls of `load_state_dict` that a caller gives what it has got, or an entry of it."""
    yield from filter(None, map(_restoring, _uses_by(receiver)[1]))


def _is_cuda_attribute(file: FileAnalysis, location: ir.Expr | None) -> bool:
    """`self.device`, where each method that sets it sets it to a CUDA device, or to a parameter that is one by default."""
    if not isinstance(location, ir.Attr) or location.path is None:
        return False
    values = [
        (function, statement.value)
        for function, evidence in file.evidence.items()
        if location.path in evidence.stored
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign)
        and any(target.path == location.path for target in statement.targets)
    ]
    return bool(values) and all(
        names_cuda(file, function, value) or _is_cuda_by_default(file, function, value)
        for function, value in values
    )


def _is_cuda_by_default(file: FileAnalysis, function: ir.Function, value: ir.Expr | None) -> bool:
    """`device` or `torch.device(device)` of a parameter `device="cuda"`."""
    if isinstance(value, ir.Call) and qualified(file, function, value.func.path) == "torch.device":
        value = value.args[0] if len(value.args) == 1 else None
    if not isinstance(value, ir.Name):
        return False
    name = value.id
    return any(param.name == name and names_cuda(file, function, param.default) for param in function.params)


def uses_cuda(file: FileAnalysis) -> bool:
    """Whether the file works with a GPU. To seed its generator is not yet that."""
    called = {name for evidence in file.evidence.values() for name in evidence.called}
    if called & {"cuda", "set_device", "current_device"} or any(
        text.startswith("cuda") for evidence in file.evidence.values() for text in evidence.strings
    ):
        return True
    if any(full.startswith("torch.cuda.amp") or full == "torch.cuda" for full in file.names.imports.values()):
        return True
    seeds = bool(called & {"manual_seed", "manual_seed_all"})
    return not seeds and any("cuda" in evidence.words for evidence in file.evidence.values())


def _goes_into_state(expr: ir.Expr, parents: dict[int, ir.Expr]) -> ir.Call | None:
    """`model.load_state_dict(torch.load(path)["model"])`, `load_state_dict(torch.load(path).state_dict())`."""
    previous = expr
    for around in chain_of(expr, parents):
        if isinstance(around, ir.Call) and around.method == "load_state_dict":
            return around if previous in around.args and copies_tensors(around) else None
        taken = isinstance(around, ir.Sub) and around.base is previous
        fetched = isinstance(around, ir.Attr) and around.attr in TAKING
        called = isinstance(around, ir.Call) and around.func is previous and around.method in TAKING
        if not (taken or fetched or called):
            return None
        previous = around
    return None


def _name_of(statement: ir.Stmt, call: ir.Call) -> tuple[str | None, bool]:
    """The plain name that what is loaded gets, `ckpt = torch.load(…)`, and whether it is one entry of that."""
    if not isinstance(statement, ir.Assign) or len(statement.targets) != 1:
        return None, False
    target, value = statement.targets[0], statement.value
    entry = isinstance(value, ir.Sub) and value.base is call
    if not (value is call or entry) or not isinstance(target, ir.Name):
        return None, False
    return target.id, entry


def _restoring(use: Use) -> ir.Call | None:
    """The `load_state_dict` to which the loaded thing, or one of its items, is handed."""
    previous = use.expr
    for around in use.chain:
        if isinstance(around, ir.Call) and around.method == "load_state_dict":
            return around if around.func is not previous and copies_tensors(around) else None
        previous = around
    return None


def _is_entry(use: Use) -> bool:
    """`ckpt["model"]`, `ckpt.get("model")`."""
    around = use.chain[0] if use.chain else None
    if isinstance(around, ir.Sub):
        return around.base is use.expr
    return isinstance(around, ir.Attr) and around.attr in ("get", "pop")


def copies_tensors(restoring: ir.Call) -> bool:
    """Whether what is restored holds tensors on the GPU, not as a scheduler, a scaler or a sampler, and gets copies."""
    assign = restoring.keyword("assign")
    if assign is not None and not (isinstance(assign, ir.Const) and assign.value is False):
        return False
    return isinstance(restoring.func, ir.Attr) and not _NUMBERS_ONLY.search(restoring.func.base.path or "")
