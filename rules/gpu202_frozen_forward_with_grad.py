from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.rules._forwards import GRAD_MODES, builds_graph, of_old_torch, trains_beside, under_no_grad

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import UNKNOWN, Graph, in_text_order
from gpulint.analysis.evaluate.consumers import Use, consumers, goes_backward_by
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import UNSEEN, weight
from gpulint.analysis.queries.amounts import NARROW, TOY, is_of_one_sample, of_device, said
from gpulint.analysis.queries.cover import cover
from gpulint.analysis.queries.effects import gradients_are_read, origins_of, place_of, share, uses_since_made
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.hooks import hooks
from gpulint.analysis.queries.networks.behind import made_of
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.queries.networks.gradients import Gradients, gradients_of
from gpulint.analysis.queries.networks.module_mode import module_mode
from gpulint.analysis.queries.networks.runs import Run, entered, is_of_module, runs
from gpulint.analysis.queries.networks.trained import all_made, frozen, of_unseen_package, optimizers_of
from gpulint.analysis.queries.outcome import outcome
from gpulint.analysis.queries.raises import old_torch, raises
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.steps import is_in_step
from gpulint.analysis.syntax.flow import ENTRY
from gpulint.analysis.syntax.nodes import argument, arguments, dotted, key_of, keyword, last_name
from gpulint.answers import (
    Answer,
    Question,
    confidence_of,
    least_open,
    left_open,
    minor,
    proven,
    refuted,
    until_refuted,
)
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

_COST: Final = Cost(
    "every activation of this forward, beside what the step has by then, until its result is cut or let go of",
    "3.63 instead of 3.22 GiB for a teacher as large as its student, 4-layer language models; H200, torch 2.11",
)
_COST_OF_GRADIENTS: Final = Cost(
    "gradients of all the weights, as large as the weights, held for the whole run, and computed in each step",
    "64 instead of 32 MiB after a step through 8 linear layers of width 1,024; H200, torch 2.11",
)
_FATES: Final = {
    "cleared": "are cleared before its own step",
    "left": "nobody steps",
}
_INSTEAD: Final = {  # by fate: where what it is given wants no gradient, and where it does
    "cleared": (
        "backward goes through it to its weights alone, and what it makes there is cleared before its own step",
        "`{name}.requires_grad_(False)` before this forward, and `True` before its own, spares them and what its layers save for them",
    ),
    "left": (
        "what it is given has no graph: `{name}.requires_grad_(False)`, once and before the loop, spares the gradients that nobody uses",
        "each step computes them, and `.grad` holds them: `{name}.requires_grad_(False)`, once and before the loop, spares both",
    ),
}
_MAY_BE_FROZEN: Final = "what makes it is not seen: it may be frozen there"
_COST_OF_THROWN: Final = Cost(
    "gradients of all the weights, computed for nothing, and what convolutions and linear layers save for them",
    "a step of a generator and a discriminator takes 8.76 ms, with `requires_grad_(False)` for the first 7.27 ms, the peak is the same; H200, torch 2.11",
)


class FrozenForwardWithGrad(Rule):
    """
    ## What it does
    Finds networks that run with grad enabled inside a training step, although their result is only ever detached or
    read as a number, or although no optimizer trains them and nothing before them wants a gradient: teachers, target
    and reference networks, feature extractors.

    What an optimizer has is followed from where it is made: networks, their parts and what they are part of, lists, groups and sums of
    parameters. Where what is stepped after the backward is not seen, nothing is told.

    It is a warning only where the network is seen to be large, or pictures or sequences go through one that is not seen to be small, and
    a note where how large it is cannot be seen, or where it is small: a step lets go of what it saves. Nothing is said of a few linear
    layers whose widths are all in sight and small, and with low confidence where some are not, or where one sample at a time goes
    through: what is left in them is little. Of 8 findings like that, read in repositories that nobody had seen before, none was worth
    mending. What is asked for an action beside the training, by a function of its own, is told as an evaluation (GPU201).

    Confidence is low where nothing reads the result, so that the network may run for what it leaves elsewhere; where it is not seen
    what makes the network through which a backward goes, or who else has it: they may have frozen it; where it is loaded as a whole; where
    only its name says that it is a network; and within the forward of a network that nobody is seen to train.

    A network that another step trains may run for its value alone as well: a discriminator on the real samples, to which the made ones
    are matched, within the step of the generator. Where what it is given wants no gradient, and its own gradients are cleared before its
    optimizer steps, both are for nothing.

    Whose gradients a backward makes beside those that it is for is followed as well: on each way on which the program goes on, what steps
    or clears them first. Told is an attack within a training, whose `backward()` is for the gradient of its input and makes those of all
    weights, which `zero_grad()` throws away; and a judge in the step of a generator or an actor, also of networks and optimizers that go
    by key. It costs time, and no memory that its own step does not take: a warning where the network is seen to be large, else
    at low confidence. Nothing is said where it is frozen by then, by whichever method or caller, where the same gradients are stepped
    with before anybody clears them, or where an optimizer of which it is not seen what it has steps first. A forward of which
    `autograd.grad(loss, x)` asks nothing, as `x` is not in it, is told too: it can run under `no_grad`.

    Networks that a backward goes through to something else, and that nobody steps or freezes, are told as well: an attacked classifier, of
    which only the patch is optimised, what a picture or a latent is fitted to, what a hook explains, a judge between a generator and its loss. Their
    input wants a gradient, so that `no_grad` would be wrong: `net.requires_grad_(False)`, once and before the loop. Nothing is
    said where `torch.autograd.grad(loss, x)` or `backward(inputs=[x])` asks for that gradient alone. Each network is told once in a file.

    ## Why is this bad
    The forward saves every activation of the auxiliary network for a backward that never goes there, next to those of
    the network that is trained. `.detach()` on the result comes too late: until then the graph has been built.

    ## What it costs
    A teacher beside its student, 4-layer language models with AdamW: the step peaks at 3.63 GiB with grad and at 3.22
    GiB under `no_grad`, 11 % less; 8-layer MLPs: 162 MiB and 134 MiB. The steps took 26.7 and 26.3 ms, 1.78 ms and 1.66
    ms (NVIDIA H200, torch 2.11). A network whose parameters all have `requires_grad=False`, run on inputs without grad,
    builds no graph and is not reported.

    A network that a backward goes through to its input and that is not frozen gets gradients of all its weights, as large as the
    weights, in each step: with a patch optimised through 8 linear layers of width 1,024, 64.07 instead of 32.04 MiB stay
    allocated after a step, the step peaks at 106 instead of 58 MiB and takes 3.02 instead of 2.17 ms.

    A generator's step that compares what the discriminator makes of its samples with what it makes of real ones, 8-layer MLPs: it
    peaks at 200 MiB and takes 5.12 ms with grad for the real ones, 168 MiB and 3.36 ms without. A generator's and a discriminator's
    step take 8.76 ms where the generator's makes gradients of the discriminator's weights, which are thrown away, 7.27 ms where it is
    frozen meanwhile; the peak is the same.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F
    from torchvision.models import resnet50

    def distill(student: torch.nn.Module, loader, optimizer):
        teacher = resnet50(weights="DEFAULT").cuda()
        for inputs, _ in loader:
            outputs = student(inputs)
            targets = teacher(inputs).detach()
            loss = F.mse_loss(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torchvision.models import resnet50

    def distill(student: torch.nn.Module, loader, optimizer):
        teacher = resnet50(weights="DEFAULT").cuda()
        for inputs, _ in loader:
            outputs = student(inputs)
            with torch.no_grad():
                targets = teacher(inputs).detach()
            loss = F.mse_loss(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    Putting the statement under `with torch.no_grad():` changes no result, as nothing goes backward through it: safe. Offered where the
    statement runs no other network, and has its line for itself. Where backward does go through it, but nobody trains it, or what it makes
    there is cleared: unsafe, as an optimizer in another file could, and others may read its gradients. Where the gradient of one tensor is
    all that is read after a backward, `backward(inputs=[x])` is offered: unsafe, as others may read the gradients of the weights, and torch
    has no `inputs` before 1.8. Nothing is offered where the network is to be frozen: another program may train it.
    """

    code = "GPU202"
    name = "frozen-forward-with-grad"
    severity = Severity.WARNING
    runtime_claim = Claim("forward", unvisited=True)
    doubts = True
    triggers = ((b"torch", b"lightning"), (b"backward", b"def forward", b"training_step", b"compute_loss"))

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        told: set[Any] = set()  # networks that a backward goes through, each told once
        ways = [(asked.root(one), parts) for one in asked.file.parts for parts in (False, True)]
        several = list(dict.fromkeys(run for way in ways for run in runs(asked.evaluator, *way)))
        found = [(run, until_refuted(_answers(asked, run))) for run in several]
        found.sort(key=lambda one: least_open(one[1]))  # of a network's runs that which tells most
        held = [run for run, answers in found if confidence_of(answers) is not None]
        wanted = [run for run in held if outcome(asked.evaluator, run.inner, run.where).wanted]
        above = {run.inner for run in held if not run.is_direct and run not in wanted}  # told at that call
        below = {run.inner for run in wanted if run.is_direct}
        for run, answers in found:
            trained = run in wanted and bool(optimizers_of(asked.evaluator, run.network))
            through = run in wanted and (not trained or _wants_input(asked, run))
            made = all_made(asked.evaluator, run.network) if through else set()
            once = share(made, told) or run.inner in (above if run.is_direct else below)
            told |= made
            report = None if once else partial(_report, asked, run)
            yield Claimed(run.call, _named(run, run in wanted), answers, report)


def _answers(asked: Asked, run: Run) -> Iterator[Answer]:
    """On what the claim stands that a step builds a graph through a network that nobody uses, or gradients of its weights."""
    evaluator = asked.evaluator
    grad = grad_mode(evaluator, run.inner, run.where)
    what = outcome(evaluator, run.inner, run.where)
    chosen = what.wanted or any(run.frame.flow.conditions(run.call))  # for those who have it off, maybe
    if grad.mode == "mixed" and chosen:
        yield left_open(Question.GRAD, GRAD_MODES[grad.mode], grad.by)
    if what.wanted:
        yield from _of_weights(asked, run, what.wanted)
    else:
        yield from _of_result(asked, run)
    yield from builds_graph(asked, run, grad)
    place, network = place_of(evaluator, run.named, run.where), run.network
    several = [network.but(origins=frozenset({one})) for one in in_text_order(origins_of(evaluator, network))]
    if len(several) > 1 and any(frozen(evaluator, one, place) is not None for one in several):
        yield left_open(Question.TRAINED, "some of those who make it freeze it")
    if any(evaluator.does(*one).startswith("loads") for one in network.calls):
        clause = "it is loaded as a whole: it may have been frozen when it was saved"
        yield left_open(Question.TRAINED, clause)
    yield from (left_open(Question.TENSOR, one.clause) for one in run.network.assumptions)
    yield from _size(evaluator, run)
    yield from of_device(evaluator, run)
    yield from raises(evaluator, run.call, run.frame)
    yield from reached(evaluator, run.frame.function)
    yield from of_old_torch(asked)


def _of_result(asked: Asked, run: Run) -> Iterator[Answer]:
    """Whether it runs in a step of training, and nothing of what it gives goes on with its graph."""
    evaluator = asked.evaluator
    what = outcome(evaluator, run.inner, run.where)
    whole = outcome(evaluator, run.call, run.frame)
    if not all(one.is_read_only and not one.stored for one in (what, whole)):
        yield refuted(Question.READS, "its result goes on with its graph, or where that is not seen")
    part = is_of_module(evaluator, run.frame.function)
    if part and not run.is_direct and _is_of_self(run):
        yield refuted(Question.READS, "it is told of the network whose method it is")
    if part and not (what.read and all(run.holds(use.frame) for use in what.read)):
        yield refuted(Question.REACHED, "it is told where the network is called")
    inner = entered(evaluator, run)
    ran = runs(evaluator, inner) if inner is not None else ()
    if not all(outcome(evaluator, one.inner, one.where).is_read_only for one in ran):
        yield refuted(Question.BACKWARD, "what it runs is differentiated, or kept, beside what it gives")
    mode = module_mode(evaluator, run.named, run.where)
    if not is_in_step(asked.steps, evaluator, run):
        others = runs(evaluator, run.frame) if part else ()
        if all(outcome(evaluator, one.inner, one.where).is_read_only for one in others):
            yield refuted(Question.BACKWARD, "no step of training runs beside it")
        yield left_open(Question.BACKWARD, "who goes backward through what runs beside it is not seen")
    elif not part or run.frame.flow.loops(run.call):
        if not trains_beside(asked, run, mode):
            yield refuted(Question.MEANT, "it is an evaluation, which is told as such")
    yield proven(Question.BACKWARD, "no backward can go through what it gives")
    if not optimizers_of(evaluator, run.network):
        yield from (left_open(Question.TRAINED, clause) for clause in _handed(evaluator, run))
    if not _is_shown(evaluator, run):
        yield refuted(Question.TENSOR, "nothing shows that a network runs here")
    if not what.read:
        yield left_open(Question.READS, "nothing reads its result: it may run for what it leaves elsewhere")


def _of_weights(asked: Asked, run: Run, backwards: tuple[Use, ...]) -> Iterator[Answer]:
    """Whether a backward goes through it, and nobody trains it."""
    evaluator = asked.evaluator
    if is_of_module(evaluator, run.frame.function) and outcome(evaluator, run.inner, run.where).returned:
        yield refuted(Question.TRAINED, "not all are seen who go backward through what it is part of")
    named = [one for one in map(_asked_for, backwards) if one is not None]
    if named:
        graphs = {evaluator.value_of(one, run.where).graph for one in arguments(run.inner)}
        several = len(named) < len(backwards) or not all(_are_tensors(evaluator, *one) for one in named)
        if several or Graph.LIVE in graphs:
            yield refuted(Question.BACKWARD, "it asks for gradients by name")
        if graphs - {Graph.NONE}:
            yield left_open(Question.GRAPH, "what it is given may be made of what is asked for")
        yield proven(Question.BACKWARD, "it asks for the gradients of other things by name")
        return
    if _is_told_above(asked, run):
        yield refuted(Question.REACHED, "it is told where the network is called that it is part of")
    found, is_trained = _gradients(asked, run), bool(optimizers_of(evaluator, run.network))
    wants = _wants_input(asked, run)
    if found.fate in ("stepped", "unseen") or (is_trained and found.fate == "left" and not wants):
        clause = "an optimizer that is stepped after this backward has its weights, or may have"
        yield refuted(Question.TRAINED, clause)
    reads = bool(_gradients_read(evaluator, run)) or _is_hooked(asked, run)
    if not (found.beside or reads) or (None in found.beside and not is_trained):
        yield refuted(Question.TRAINED, "what is stepped after this backward is not seen")
    yield from (_of_trained(asked, run, found, wants) if is_trained else _of_untrained(asked, run, reads))
    if is_trained and not wants:
        return
    origins = origins_of(evaluator, run.network)
    if not (origins and all(isinstance(node, ast.Call) for node, _ in origins)):
        yield left_open(Question.TRAINED, _MAY_BE_FROZEN)
        if not is_trained and not all(isinstance(node, ast.Call) for node, _ in found.beside):
            yield left_open(Question.TRAINED, "what makes that which is stepped is not seen")
    yield from (left_open(Question.TRAINED, clause) for clause in _handed(evaluator, run))


def _of_trained(asked: Asked, run: Run, found: Gradients, wants: bool) -> Iterator[Answer]:
    """Whether the gradients of a network that an optimizer has are thrown away."""
    evaluator = asked.evaluator
    if wants and weight(evaluator, run.network).least < NARROW:
        yield left_open(Question.SIZE, "it costs time, and no memory that its own step does not take")
    fed = (one for one in consumers(evaluator, run.inner, run.where, "graph") if one.role == "fed")
    if not wants and any(forward_of(evaluator, one.node, one.frame) for one in fed):
        yield refuted(Question.REACHED, "it is told where another network is given what it gives")
    if found.fate == "left":
        yield left_open(Question.TRAINED, f"that its gradients {_FATES['cleared']} is not seen")
    yield proven(Question.TRAINED, "what this backward makes of them its own step does not use")


def _of_untrained(asked: Asked, run: Run, reads: bool) -> Iterator[Answer]:
    """Whether a network that no optimizer has is seen to have weights that want gradients, step by step."""
    evaluator = asked.evaluator
    origins = origins_of(evaluator, run.network)
    annotated = bool(origins) and all(getattr(node, "annotation", None) is not None for node, _ in origins)
    evaluates = module_mode(evaluator, run.named, run.where).mode == "eval"
    if not (reads or evaluates or annotated or _has_weights(evaluator, run)):
        yield refuted(Question.TRAINED, "that it has weights is not seen, nor that it is put into eval mode")
    if gradients_are_read(evaluator, run.network):
        yield refuted(Question.TRAINED, "the gradients of its weights are read")
    yield proven(Question.TRAINED, "no optimizer that is stepped after this backward has its weights")
    if not _gradients(asked, run).beside and not run.frame.flow.loops(run.call):
        yield minor(Question.REPEATS, "nothing here repeats it: it may run once, for a look")


def _has_weights(evaluator: Evaluator, run: Run) -> bool:
    """Whether a network is seen to have weights, or to be given some."""
    weighs, several = weight(evaluator, run.network), all_made(evaluator, run.network)
    layers = (weight(evaluator, evaluator.thing(*one)).layers for one in several)
    if weighs.least or weighs.mixes or any(0 < one < UNSEEN for one in layers):
        return True
    uses = (use for one in several for use in uses_since_made(evaluator, one))
    return any(use.name == "load_state_dict" for use in uses)


def _gradients(asked: Asked, run: Run) -> Gradients:
    what = outcome(asked.evaluator, run.inner, run.where)
    network = place_of(asked.evaluator, run.named, run.where)
    return gradients_of(asked.evaluator, network, what.wanted)


def _asked_for(backward: Use) -> tuple[Any, Frame] | None:
    """Whose gradients alone a backward asks for: `autograd.grad(loss, x)`, `loss.backward(inputs=x)`."""
    call = backward.node
    if not isinstance(call, ast.Call):
        return None
    by_position = argument(call, 1, "inputs") if last_name(call.func) == "grad" else None
    inputs = by_position or keyword(call, "inputs")
    return (inputs, backward.frame) if inputs is not None else None


def _are_tensors(evaluator: Evaluator, inputs: Any, frame: Frame) -> bool:
    """Whether these are tensors that are seen to want gradients, so that it shows what is made of them, and nothing of a network."""
    several = inputs.elts if isinstance(inputs, (ast.List, ast.Tuple)) else (inputs,)
    values = [evaluator.value_of(one, frame) for one in several]
    parts = (part for one in several for part in ast.walk(one) if isinstance(part, ast.expr))
    of_network = any(evaluator.value_of(one, frame).kind == "module" for one in parts)
    return not of_network and all(one.kind == "tensor" and one.graph is Graph.LIVE for one in values)


def _handed(evaluator: Evaluator, run: Run) -> Iterator[str]:
    """What is not seen, and makes it or is given it: it may freeze it."""
    makers = (evaluator.value_of(one.func, where) for one, where in run.network.calls)
    if any(one.kind == "library" for one in makers) and of_unseen_package(evaluator, run.network):
        yield _MAY_BE_FROZEN
        return
    for origin in in_text_order(origins_of(evaluator, run.network)):
        for use in uses_since_made(evaluator, origin):
            func = getattr(use.node, "func", use.node)
            of_torch = evaluator.value_of(func, use.frame).full_name.startswith("torch.")
            if use.role == "too much" or (use.role == "given" and not (use.does or of_torch)):
                yield f"`{use.name}` is given it, and may freeze or train it"
                return


def _is_shown(evaluator: Evaluator, run: Run) -> bool:
    """Whether it is made as a network, declared as one, or used as one elsewhere: moved, frozen, asked for its weights."""
    network, origins = run.network, run.network.origins
    declared = any(getattr(node, "annotation", None) is not None for node, _ in origins)
    if declared or network.ref is not None or evaluator.calling.made_by(network) is not None:
        return True
    return any(use.row is not None or use.path for one in origins for use in uses_since_made(evaluator, one))


def _size(evaluator: Evaluator, run: Run) -> Iterator[Answer]:
    """Whether what one step saves is much: it lets go of it."""
    found = weight(evaluator, run.network)
    is_small = found.whole or (found.mixes == "sequences" and 0 < found.least < TOY)
    if found.whole and (not found.least or (found.least < TOY and not found.mixes)):
        yield refuted(Question.SIZE, "it has no weights to speak of")
    elif found.least >= NARROW:
        yield proven(Question.SIZE, f"the network has {said(found.least)}")
    elif is_of_one_sample(evaluator, run):
        yield left_open(Question.SIZE, "one sample at a time goes through it")
    elif found.mixes and not is_small:
        yield proven(Question.SIZE, "pictures or sequences go through it")
    elif (found.whole or found.least) and not found.mixes:
        yield left_open(Question.SIZE, "nothing but a few linear layers is seen of it")
        yield minor(Question.SIZE, "nothing shows that it is large")
    else:
        seen = f"about {found.least:,} weights of it are seen" if found.least else ""
        yield minor(Question.SIZE, seen or "its size is not seen")


def _is_hooked(asked: Asked, run: Run) -> bool:
    """Whether a hook of the file gets gradients of something in it."""
    own = origins_of(asked.evaluator, run.network)
    several = (one for function in asked.file.functions for one in hooks(asked.evaluator, function))
    return any("backward" in one.name and share(own, one.origins) for one in several)


def _gradients_read(evaluator: Evaluator, run: Run) -> list[Any]:
    """Where the gradient of something that it is given is read where a backward is: `step = image.grad`."""
    made = (
        each for one in arguments(run.inner) for each in made_of(evaluator, one, run.where, numbers=False)
    )
    names = ((one, frame) for one, frame in made if isinstance(one, (ast.Name, ast.Attribute)))
    given = set().union(*(_traces(evaluator, one, frame) for one, frame in names))
    frames = dict.fromkeys(use.frame for use in outcome(evaluator, run.inner, run.where).wanted)
    keys = ((frame, key) for frame in frames for key in frame.flow.uses if key.endswith(".grad"))
    reads = ((one, frame) for frame, key in keys for one in frame.flow.uses[key])
    reads = ((one, frame) for one, frame in reads if evaluator.value_of(one.value, frame).kind != "parameter")
    return [one for one, frame in reads if given & _traces(evaluator, one.value, frame)]


def _traces(evaluator: Evaluator, node: Any, frame: Frame) -> set[Any]:
    """Where what an expression gives was made, and what binds the names in it."""
    bound = {one for one in frame.flow.bound_in(node) if one is not ENTRY}
    return bound | evaluator.value_of(node, frame).origins


def _wants_input(asked: Asked, run: Run) -> bool:
    """Whether something that it is given, or something in it, wants a gradient."""
    evaluator = asked.evaluator
    if any(evaluator.value_of(one, run.where).graph is not Graph.NONE for one in arguments(run.inner)):
        return True
    stepped = (one for one in _gradients(asked, run).beside if one is not None)
    alone = any(evaluator.thing(*one).kind == "optimizer" for one in stepped)  # tensors of no network
    return alone or bool(_gradients_read(evaluator, run)) or _is_hooked(asked, run)


def _is_of_self(run: Run) -> bool:
    """Whether a call is of a method of the object whose method makes it."""
    func, own = run.call.func, run.frame.function.self_name
    return isinstance(func, ast.Attribute) and run.named is not func and key_of(func.value) == own


def _is_told_above(asked: Asked, run: Run) -> bool:
    """Whether it runs in the network that it is part of, and nothing beside what it is given there has a graph: what is told is that network."""
    function = run.frame.function
    name = run.where.function.self_name  # also by another one: `for layer in self.layers`
    named = (one for one, where in made_of(asked.evaluator, run.named, run.where) if where is run.where)
    own = name and any(isinstance(one, ast.Name) and one.id == name for one in named)
    framework = goes_backward_by(asked.evaluator, function)
    if not own or framework or not is_of_module(asked.evaluator, function):
        return False
    values = (asked.evaluator.thing(one, asked.root(function)) for one in function.parameters)
    return all(one.graph is not Graph.LIVE for one in values) or _wants_input(asked, run)


def _named(run: Run, wanted: bool) -> str:
    """The network, where a backward goes through it, else what runs here: it as it is written, or what runs it."""
    node = run.named if wanted or (run.is_direct and not _is_of_self(run)) else run.call.func
    return ast.unparse(node) if isinstance(node, ast.Subscript) else dotted(node) or "the network"


def _report(asked: Asked, run: Run) -> Report:
    what = outcome(asked.evaluator, run.inner, run.where)
    name = _named(run, bool(what.wanted))
    cost, claim = _COST, Claim("forward") if what.wanted else None
    message = f"`{name}` runs with grad enabled in a training step, but no "
    if not what.wanted or _asked_for(what.wanted[0]) is not None:
        message += "backward goes through this call"
        used = "is only detached or read as a number" if what.read else "is read by nobody"
        used = "has none of the gradients that are asked for by name" if what.wanted else used
        reason = f"the result of this call {used}: its activations are saved for nothing"
    else:
        fate, wants = _gradients(asked, run).fate, _wants_input(asked, run)
        fate = "cleared" if optimizers_of(asked.evaluator, run.network) else fate
        if wants:
            cost, claim = _COST_OF_GRADIENTS if fate == "left" else _COST_OF_THROWN, Claim("code")
            message = f"backward goes through `{name}` to what it is given, and makes gradients of all its weights, which {_FATES[fate]}"
        else:
            message += "step uses its gradients" if fate == "cleared" else "optimizer trains it"
        reason = _INSTEAD[fate][wants].format(name=name)
        if _is_hooked(asked, run):
            reason += "; what it is given has to want its own then"
    repair = partial(_repair, asked, run)
    return Report(run.call, message, reason, cost, repair=repair, subject=name, claim=claim)


def _repair(asked: Asked, run: Run) -> Repair | None:
    """The statement under `no_grad`, where nothing else in it could want a graph."""
    what, old = outcome(asked.evaluator, run.inner, run.where), old_torch(asked.evaluator, asked.file)
    if old is not None:
        return None
    if what.wanted and _asked_for(what.wanted[0]) is None and _wants_input(asked, run):
        return _asking_alone(asked, run, what.wanted)
    chosen = cover(asked.evaluator, asked.steps, [run])
    if chosen is None or chosen.whole:
        return None
    whole = getattr(chosen.statements[0], "value", None)
    made = asked.evaluator.value_of(whole, run.frame) if whole is not None and not what.wanted else UNKNOWN
    if made.graph is not Graph.NONE and outcome(asked.evaluator, whole, run.frame).wanted:
        return None  # a backward goes through something else of the same statement
    why = "others may train it, or read its gradients" if what.wanted else chosen.doubt
    return under_no_grad(asked, why, "run it under `{}()`", chosen.statements[0])


def _asking_alone(asked: Asked, run: Run, backwards: tuple[Use, ...]) -> Repair | None:
    """`loss.backward(inputs=[x])`, where the gradient of that alone is read after a backward of this file."""
    from gpulint.fix.nodes import with_argument

    call, flow = backwards[0].node, backwards[0].frame.flow
    plain = last_name(getattr(call, "func", call)) == "backward" and not arguments(call)
    names = {key.partition(".grad")[0] for key in flow.uses if key.endswith(".grad")}
    nodes = (call, *_gradients_read(asked.evaluator, run))
    at, *reads = (flow.order[flow.statement_of(one)] for one in nodes)
    alone = plain and len(backwards) == len(names) == 1 and not _gradients(asked, run).beside
    if not alone or max(reads, default=at) <= at or not asked.is_here(backwards[0].frame):
        return None
    name, node = names.pop(), asked.node(call)
    why = "others may read the gradients of the weights, and before torch 1.8 there is no `inputs`"
    change = Replace(node, with_argument(node, "inputs", f"[{name}]", 3))
    return Repair("unsafe", f"ask for the gradient of `{name}` alone", (change,), why)
