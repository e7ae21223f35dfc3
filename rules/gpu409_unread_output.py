from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.rules._forwards import scores_words

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.queries.amounts import through_batches
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.networks.forwards import Forward, forwards
from gpulint.analysis.queries.networks.runs import runs_of
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.on_device import operations
from gpulint.analysis.syntax.nodes import constant_index, keyword, last_name
from gpulint.answers import Answer, Question, left_open, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Remove, Repair, Report, Rule

_ASKED: Final = {"output_hidden_states": "hidden_states", "output_attentions": "attentions"}
# What asks for fewer positions, or brings what has been worked out of the earlier ones.
_FEWER: Final = frozenset("logits_to_keep num_logits_to_keep past_key_values past cache_params".split())
_IDLE: Final = frozenset({"bound", "deleted", "dropped"})
_CODE: Final = "trust_remote_code"
_NONE: Final = "nobody reads any"
_COSTS: Final = {
    "hidden_states": Cost(
        "what every layer gives, until the last name of the output goes",
        "2.04 GiB at the peak, 1.66 GiB without them, for an evaluation of 24 layers; H200, torch 2.11",
    ),
    "attentions": Cost(
        "a map of all pairs of positions for every head of every layer, which a fused kernel never makes",
        "4.66 GiB at the peak, 1.66 GiB without them, for an evaluation of 24 layers; H200, torch 2.11",
    ),
    "logits": Cost(
        "a score for each word of the vocabulary at every position, and as much for their gradient",
        "681 MiB at the peak, 317 MiB with the last position's alone, for a 4-layer language model; H200, torch 2.11",
    ),
}


class UnreadOutput(Rule):
    """
    ## What it does
    Finds a network that gives far more than is read of it: the hidden states of all layers (`output_hidden_states=True`) or their attention
    maps (`output_attentions=True`), of which nobody reads any, or only the last hidden state; and a language model's logits of all
    positions, of which one position is read, or none.

    With a doubt it also tells of logits of a network that is not known to score a vocabulary.

    ## Why is this bad
    What a forward gives is made, and stays until the last name of the output goes. Without grad a layer's hidden states could go as soon as
    the next layer has run; with grad the graph needs them anyway: nothing is said of a training, and with a doubt of what a training runs too. Attention maps are only made where a fused kernel is
    not used, which needs no memory for them. Logits have a score for each word at every position, often more than all the rest of an
    evaluation together, and where a loss goes through one position, their gradient is as large.

    A loop that decodes with a cache has one position at a time, and is not told.

    ## What it costs
    Logits of all positions where the last is read: an evaluation peaks at 681 MiB and takes 6.13 ms, with those of the last position 317 MiB
    and 3.32 ms; a training 1.35 GiB and 903 MiB (4-layer language model, NVIDIA H200, torch 2.11). In an evaluation of 24 layers hidden
    states that nobody reads take 2.04 GiB, without them 1.66 GiB; attention maps 4.66 GiB and 27.19 ms, without them 1.66 GiB and 14.94 ms.
    A training of the same keeps its hidden states anyway, 8.77 GiB with and without; attention maps make it 11.39 GiB.

    ## Example
    ```python
    import torch
    from transformers import AutoModel


    @torch.no_grad()
    def embed(loader):
        model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
        vectors = []
        for batch in loader:
            out = model(**batch, output_hidden_states=True)
            vectors.append(out.last_hidden_state[:, 0].cpu())
        return torch.cat(vectors)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModel


    @torch.no_grad()
    def embed(loader):
        model = AutoModel.from_pretrained("bert-large-uncased").cuda().eval()
        vectors = []
        for batch in loader:
            out = model(**batch)
            vectors.append(out.last_hidden_state[:, 0].cpu())
        return torch.cat(vectors)
    ```

    Logits of the last position alone: `model(**batch, logits_to_keep=1)`. `transformers<4.45` has no such argument, and a position of
    each sequence's own is no last one: call the network below the head
    (`model.model`, `model.transformer`) and give the head the rows that are wanted. For embeddings load the network without its
    head, and read `last_hidden_state`.

    ## Fix safety
    The fix takes out `output_hidden_states=True` where nobody reads them: safe. `output_attentions=True`: unsafe, as another kernel for
    attention rounds otherwise. Logits have none.
    """

    code = "GPU409"
    name = "unread-output"
    severity = Severity.INFO
    runtime_claim = Claim("code")
    triggers = ((b"torch",), (b"output_hidden_states", b"output_attentions", b"logits"))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (one for one in asked.file.parts if one.words & {*_ASKED, "logits"}):
            for forward in forwards(asked.evaluator, function):
                for at, part, why in _unread(asked.evaluator, forward):
                    answers = until_refuted(_answers(asked, forward, part))
                    yield Claimed(at, part, answers, partial(_report, asked, forward, at, part, why))


def _read(evaluator: Evaluator, forward: Forward) -> dict[Any, list[Use]] | None:
    """The reads of each part of what a forward gives, by name or number; None where all of it goes somewhere else."""
    found: dict[Any, list[Use]] = {}
    for use in consumers(evaluator, forward.call, forward.frame, "object"):
        at = getattr(use.node, "slice", None)
        part = constant_index(at) if at is not None else getattr(use.node, "attr", None)
        if use.role == "attribute" and (isinstance(part, str) or part == 0):
            found.setdefault(part, []).append(use)
        elif use.role not in _IDLE:
            return None
    return found


def _unread(evaluator: Evaluator, forward: Forward) -> Iterator[tuple[Any, str, str]]:
    """The parts that a forward makes for nobody, each with the place that asks for it and with what is said of it."""
    read, given = _read(evaluator, forward), {str(one.arg): one.value for one in forward.call.keywords}
    if read is None or evaluator.is_dead(forward.call, forward.frame):
        return
    for word, part in _ASKED.items():
        asks, uses = given.get(word), [use for key in read if str(key).endswith(part) for use in read[key]]
        reads = [one for use in uses for one in _reads(evaluator, use)]
        last = part == "hidden_states" and all(
            constant_index(getattr(one.node, "slice", one.node)) == -1 for one in reads
        )
        if getattr(asks, "value", None) is True and (last or not uses):
            yield asks, part, "only the last is read" if uses else _NONE
    if given.keys() & _FEWER or "past_key_values" in read:
        return
    outputs = evaluator.table.knows("module.outputs")
    reads = [one for use in read.get("logits", ()) for one in _reads(evaluator, use)]
    if reads and not read.keys() & {0, "loss"} and all(_is_one(evaluator, one) for one in reads):
        yield forward.call, "logits", "one position is read"
    elif read and read.keys() <= outputs.keys() and scores_words(evaluator, forward):
        yield forward.call, "logits", _NONE


def _reads(evaluator: Evaluator, use: Use) -> Iterator[Use]:
    """What is done with a part, but to ask for its form."""
    for one in consumers(evaluator, use.node, use.frame, "object"):
        row = evaluator.table.own("tensor.attributes", one.name) or evaluator.table.own("tensor", one.name)
        if one.role not in _IDLE and (row is None or row.gives not in ("number", "device") or row.reads):
            yield one


def _is_one(evaluator: Evaluator, use: Use) -> bool:
    """Whether scores are read at one position of each sequence: at the last, or at a place of its own for each row."""
    rows, *axes = getattr(getattr(use.node, "slice", None), "elts", [use.node])
    made = (one.func for one, _ in operations(evaluator, rows, use.frame) if isinstance(one, ast.Call))
    return bool(axes) and (constant_index(axes[0]) == -1 or last_name(next(made, rows)) == "arange")


def _answers(asked: Asked, forward: Forward, part: str) -> Iterator[Answer]:
    evaluator, call, frame, network = asked.evaluator, forward.call, forward.frame, forward.network
    if part == "logits":
        if not scores_words(evaluator, forward):
            yield left_open(Question.SIZE, "how many words the network scores is not seen")
    elif evaluator.method(network.ref, "forward") is not None:
        yield refuted(Question.READS, "the network is the program's own, and may read what it is asked for")
    elif not network.calls or any(keyword(one, _CODE) for one, _ in network.calls):
        yield left_open(Question.READS, "the network may have code of its own, which reads it")
    grad = grad_mode(evaluator, call, frame)
    if part == "hidden_states" and grad.mode != "off":
        told = refuted if grad.mode == "on" and grad.called else left_open
        yield told(Question.GRAD, "where grad is on, the graph keeps what every layer gives")
    if not any(through_batches(evaluator, run) for run in runs_of(evaluator, call, frame)):
        yield left_open(Question.REPEATS, "that batches go through the network is not seen")
    yield from (left_open(Question.TENSOR, one.clause) for one in network.assumptions)
    yield from reached(evaluator, frame.function)


def _report(asked: Asked, forward: Forward, at: Any, part: str, why: str) -> Report:
    what = "scores of all positions" if part == "logits" else f"{part.replace('_', ' ')} of all layers"
    return Report(
        at,
        f"`{asked.called(forward.call)}` gives the {what}, of which {why}",
        "no use of its output goes to the rest",
        _COSTS[part],
        repair=lambda: _repair(asked, forward.call, at) if why == _NONE and at is not forward.call else None,
    )


def _repair(asked: Asked, call: ast.Call, asks: Any) -> Repair:
    whole: Any = asked.node(call)
    argument = next(one for one in whole.args if one.value is asked.node(asks))
    why = "another kernel for attention may round otherwise" if "att" in argument.keyword.value else ""
    return Repair.unless(why, f"remove `{argument.keyword.value}=True`", (Remove(argument),))
