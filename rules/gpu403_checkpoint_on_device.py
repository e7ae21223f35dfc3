from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.project.file import File
from gpulint.analysis.project.requirements import oldest_torch
from gpulint.analysis.queries.calls import leading_to
from gpulint.analysis.queries.lifetime import is_last_of_module, lets_go, step_while_bound
from gpulint.analysis.queries.loads import (
    Load,
    Loaded,
    Optimizer,
    Restored,
    checkpoint_matters,
    loaded,
    loads,
    made_elsewhere,
    saved_states,
    stars_of,
)
from gpulint.analysis.queries.networks.placed import moved_anywhere, placed
from gpulint.analysis.queries.processes import by_every_process, train_together
from gpulint.analysis.queries.reached import reached
from gpulint.answers import Answer, Question, Verdict, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule


class CheckpointOnDevice(Rule):
    """
    ## What it does
    Finds `torch.load` of a training checkpoint without `map_location`, with a CUDA device as such, or with a place that is None
    wherever there is CUDA. Only what ends in `load_state_dict`, or is copied tensor by tensor into weights, is reported, under whatever name
    and in whatever function it gets there, and only where a network of the program goes to a GPU.

    Without a doubt it tells of a checkpoint that a name, an attribute or a list keeps while steps run, here, in a caller, or in a function that
    is handed to a library, or that a name of a script's own module keeps beside a network on the GPU, and that is large: the weights of a network that is seen to have ten million, or those of a smaller one with an optimizer's state, which
    is twice as much; and of one that each of several processes brings back to the same GPU. That its tensors were on a GPU it takes
    from what the program saves, or from the entries of the file. Most others are small, or are let go of before training begins:
    of 110 findings of this rule, read in repositories that nobody had seen before, 20 were worth mending.

    With a doubt it also tells of checkpoints that nothing keeps while a step runs, or part of which is taken over as it is, of networks
    out of sight, of all checkpoints of an average at once, and of loads that perhaps one process only runs. It is silent about an optimizer's state that is restored alone, which the optimizer takes over as it
    is (before torch 2.1 it copies it: told, with a doubt, where the project runs with one); about tensors that become a part of an object, where nothing keeps the rest; about files that the program makes just before, downloads or ships; and where a
    network with few weights is filled and what was loaded is let go of.

    ## Why is this bad
    Without `map_location` every tensor of the checkpoint comes back on the GPU it was saved from, beside the model and
    the optimizer that it is about to be copied into. With several processes all of them load onto the same GPU.

    ## What it costs
    Resuming a 4-layer language model with AdamW: peak 1.02 GiB, 870 MiB with `map_location="cpu"`; from weights alone
    348 MiB and 174 MiB. Loading takes a little longer then, 287 instead of 249 ms (NVIDIA H200, torch 2.11). As long as
    a name holds the checkpoint, the memory stays taken; where none does, the finding is only an info.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Fix safety
    Safe where all that is loaded goes into `load_state_dict` or `copy_`, which copy to the device of the model, or is a number.
    Unsafe otherwise: what reads a tensor of the checkpoint gets it on the CPU; and where a class of the program has a
    `load_state_dict` of its own, which may keep what it is given. Nothing is offered where a condition chooses the place.
    """

    code = "GPU403"
    name = "checkpoint-on-device"
    runtime_claim = Claim("growth", device_only=True)
    triggers = ((b"torch",), (b"load(",), (b"cuda", b"device", b"rank", b"State", b"checkpoint", b"ckpt"))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for load in loads(asked.evaluator, asked.file):
            if load.device == "host":
                continue  # somebody says that it goes to the host
            what = loaded(asked.evaluator, load)
            answers = until_refuted(_answers(asked, load, what))
            report = partial(_report, asked, load, what, answers)
            yield Claimed(load.place, asked.called(load.call), answers, report, (load.call, load.frame))


def _answers(asked: Asked, load: Load, what: Loaded) -> Iterator[Answer]:
    """On what it stands that a checkpoint lies on the GPU for nothing, the cheap questions first."""
    if not what.networks and not what.optimizers and what.returned is None and what.piled is None:
        yield refuted(Question.READS, "nothing is seen to be restored from it")
    ranks = by_every_process(asked.evaluator, load.call, load.frame) if load.location is None else None
    several, held = ranks is not None and ranks.verdict is Verdict.PROVEN, _held(asked, what)
    assigned = next((one.use for one in what.restored if one.assigns), None)
    if (adopted := what.adopted or assigned) is not None:
        clause = "what is loaded becomes a part of something, and would stay on the host"
        own = adopted.frame is not load.frame and load.frame in adopted.frame.around  # it is given to it here
        beside = what.networks and assigned is None and (own or held.verdict is Verdict.PROVEN)
        yield (left_open if beside else refuted)(Question.READS, clause, adopted.node)
    if not what.networks and what.optimizers and not several:
        oldest = oldest_torch(asked.program.sources, asked.file.path)
        clause = "an optimizer takes over the tensors that are on its device already, but before torch 2.1"
        yield (left_open if oldest is not None and oldest < (2, 1) else refuted)(Question.READS, clause)
    stays = held.verdict is Verdict.PROVEN  # also where several are there at once
    matters = ranks is not None or stays
    yield ranks if ranks is not None and held.verdict is Verdict.OPEN else held
    if what.restored:
        yield proven(Question.READS, "it is restored from")
    elif load.location is not None:
        yield left_open(Question.READS, "what the callers do with it is not in sight")
    else:
        yield (left_open if what.piled else refuted)(Question.READS, "nothing in sight is restored from it")
    elsewhere = made_elsewhere(asked.evaluator, load)
    if elsewhere is not None:
        yield refuted(Question.DEVICE, "the file is not one that a training has written", elsewhere)
    around = leading_to(asked.evaluator, load.frame.function)
    program: Iterable[File] = dict.fromkeys(one.file for one in around)
    if matters:
        program = asked.program.searched("state_dict", asked.file)
    as_they_are, from_host = saved_states(asked.evaluator, program)
    others = [one for one in as_they_are if one.kind != "optimizer" or what.optimizers]
    if from_host and not others and load.location is None:
        yield refuted(Question.DEVICE, "the program saves such states from the host")
    saved = bool(as_they_are)
    yield _saved_from(asked, load, what, matters, saved)
    if ranks is None:
        yield from _placed(asked, load, what, matters, saved)
    saves = what.entries and any(one.kind == "optimizer" for one in as_they_are)
    networks = [one.value for one in what.networks]
    optimizer: Optimizer = "restored" if what.optimizers else "saved" if saves else ""
    yield from checkpoint_matters(asked.evaluator, networks, optimizer, ranks is not None, stays)
    if several and held.verdict is Verdict.OPEN and not train_together(asked.evaluator, asked.file):
        yield minor(Question.REACHED, "no network is seen that the processes train together")
    yield from reached(asked.evaluator, load.frame.function)


def _held(asked: Asked, what: Loaded) -> Answer:
    """What keeps it while steps run."""
    if what.piled is not None:
        return proven(Question.OUTLIVES, "all of them are there at once", what.piled.node)
    for definition, frame in what.bound:
        function, (own, dot, name) = frame.function, definition.key.partition(".")
        if dot and function.cls is not None and own == function.self_name:
            let_go = lets_go(asked.evaluator, function.cls, name, definition)
            if let_go is None:
                return proven(Question.OUTLIVES, f"`{definition.key}` keeps it as long as the object lives")
            continue
        networks = [one.value for one in what.networks]
        at = step_while_bound(asked.steps, asked.evaluator, definition, frame, networks)
        if at is not None:
            clause = f"`{definition.key}` keeps it while steps run"
            return proven(Question.OUTLIVES, clause, at, asked.path_of(at))
        to_run = what.optimizers or any(_is_moved(asked, one) for one in what.networks)
        if networks and to_run and is_last_of_module(definition, frame):
            clause = f"`{definition.key}` of the module keeps it as long as the program runs"
            return proven(Question.OUTLIVES, clause)
    return left_open(Question.OUTLIVES, "no step is seen to run before it is let go of")


def _is_moved(asked: Asked, one: Restored) -> bool:
    return moved_anywhere(asked.evaluator, one.owner, one.frame).how == "moved"


def _placed(asked: Asked, load: Load, what: Loaded, matters: bool, saved: bool) -> Iterator[Answer]:
    """Whether what is restored is on a GPU: by then, and where what is loaded stays, at last."""
    found = []
    for one in what.networks:
        name = ast.unparse(one.owner)
        before = placed(asked.evaluator, one.owner, one.frame)
        after = moved_anywhere(asked.evaluator, one.owner, one.frame)
        found.append((name, before if before.device != "?" else after, after))
    there = [name for name, _, after in found if after.device == "cuda"]
    moved = [name for name, _, after in found if after.how == "moved" and after.device == "?"]
    if there:
        yield proven(Question.DEVICE, f"`{there[0]}` is on the GPU")
    elif moved:
        yield minor(Question.DEVICE, f"`{moved[0]}` is moved to a device, which the code does not name")
    elif found:
        name, before, after = found[0]
        if before.device == "host" and after.device != "?" and not matters:
            yield refuted(Question.DEVICE, f"`{name}` is on the host then")
        if not matters and (not saved or load.device == "cuda") and not load.by_cuda:
            yield refuted(Question.DEVICE, f"nothing shows that `{name}` is on a GPU")
        yield left_open(Question.DEVICE, f"whether `{name}` is on a GPU is not shown")


def _saved_from(asked: Asked, load: Load, what: Loaded, matters: bool, saved: bool) -> Answer:
    """Whether what is loaded was saved from a GPU."""
    if load.by_cuda:
        return proven(Question.DEVICE, "no place is named wherever CUDA is available")
    if load.location is not None:
        if load.elsewhere and matters:
            spelled, in_stars = ast.unparse(load.location), load.location in stars_of(load.call)
            for site in asked.evaluator.callers(load.frame.function) if in_stars else ():
                if asked.evaluator.calling.given(site.call, "map_location", site.frame) is None:
                    clause = f"`{spelled}` may name the place, and `{site.frame.function.qualname}` puts none in it"
                    return left_open(Question.DEVICE, clause, site.call, asked.path_of(site.call))
            return left_open(Question.DEVICE, f"whether `{spelled}` is a GPU is not shown")
        if load.elsewhere:
            return refuted(Question.MEANT, "somebody says where it goes, and it is let go of at once")
        if not matters and not what.optimizers and not saved:
            return refuted(Question.MEANT, "it is wanted on the GPU, and let go of at once")
        return proven(Question.DEVICE, "`map_location` is a GPU")
    if what.networks and all(_is_part(asked, one) for one in what.networks):
        clause = "it is for a part of a network only: others may have trained it, on whatever device"
        return left_open(Question.DEVICE, clause, what.networks[0].owner)
    if saved:
        return proven(Question.DEVICE, "the program saves such states as they are, from where the network is")
    if what.optimizers or (what.entries and matters):
        return proven(Question.DEVICE, "it is a training's checkpoint, by its entries")
    if not matters and what.restored and not what.entries:
        return refuted(Question.DEVICE, "the program shows no saving of such weights")
    return left_open(Question.DEVICE, "whether the checkpoint was saved from a GPU is not shown")


def _is_part(asked: Asked, one: Restored) -> bool:
    """Whether what is restored is an attribute of a network: `net.base`."""
    if not isinstance(one.owner, ast.Attribute) or one.owner.attr == "module":
        return False
    base = asked.evaluator.value_of(one.owner.value, one.frame)
    return base.kind == "module" and ast.unparse(one.owner.value) != one.frame.function.self_name


def _report(asked: Asked, load: Load, what: Loaded, answers: tuple[Answer, ...]) -> Report:
    named = load.location is not None and not load.by_cuda
    where = f"`{asked.source(load.location)}`" if named else "the GPU it was saved from"
    where = f"the place in {where}" if load.location in stars_of(load.call) else where
    call, shown = asked.source(load.call), [one for one in answers if one.verdict is Verdict.PROVEN]
    if any(one.question is Question.OUTLIVES for one in shown):
        message = f"`{call}` puts the whole checkpoint on {where}, where it stays after it is copied"
        here = "the whole checkpoint on the device, beside the model, for as long as it is held"
    elif any(one.question is Question.REACHED for one in shown):
        message = f"each process puts the whole checkpoint on {where} by `{call}`"
        here = "a checkpoint for each process on one device while they load"
    else:
        message = f"`{call}` puts the whole checkpoint on {where} for as long as it is copied"
        here = "the whole checkpoint on the device while it is loaded, beside the model it goes into"
    return Report(
        load.place,
        message,
        "`load_state_dict` copies from the CPU just as well, one tensor at a time",
        Cost(
            here,
            '870 MiB allocated while loading, 348 MiB with `map_location="cpu"`, for a 4-layer language model; H200, torch 2.11',
        ),
        repair=lambda: _repair(asked, load, what),
    )


def _repair(asked: Asked, load: Load, what: Loaded) -> Repair | None:
    from gpulint.fix.nodes import with_argument

    if load.place is not load.call or stars_of(load.call):
        return None
    why_unsafe, restored = "", (one.value.ref for one in what.restored)
    if what.other is not None or what.returned is not None or not what.restored:
        why_unsafe = "what else is read of the checkpoint is on the CPU then"
    elif what.adopted is not None or any(asked.evaluator.method(one, "load_state_dict") for one in restored):
        why_unsafe = "a `load_state_dict` of the program's own may keep the tensors where they were loaded"
    new = with_argument(asked.node(load.call), "map_location", asked.quoted("cpu"), position=1)
    changes = (Replace(asked.node(load.call), new),)
    return Repair.unless(why_unsafe, f"load it to the CPU: `map_location={asked.quoted('cpu')}`", changes)
