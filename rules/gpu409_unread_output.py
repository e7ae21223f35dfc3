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
from gpulint.analysis.syntax.nodes import constant_index, keyword, last_name
from gpulint.answers import Answer, Question, left_open, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Remove, Repair, Report, Rule

_ASKED: Final = {"output_hidden_states": "hidden_states", "output_attentions": "attentions"}
# What asks for fewer positions, or brings what has been worked out of the earlier ones.
_FEWER: Final = frozenset("logits_to_keep num_logits_to_keep past_key_values past cache_params".split())
_IDLE: Final = frozenset({"bound", "deleted", "dropped"})
_OF_LAYERS: Final = Cost(
    "what every layer gives, until the last name of the output goes",
    "2.04 GiB at the peak with hidden states, 4.66 GiB with attention maps, 1.66 GiB without, for an evaluation of 24 layers; H200, torch 2.11",
)
_OF_WORDS: Final = Cost(
    "a score for each word of the vocabulary at every position, and as much for their gradient",
    "681 MiB at the peak, 317 MiB with the last position's alone, for a 4-layer language model; H200, torch 2.11",
)


class UnreadOutput(Rule):
    """
    ## What it does
    Finds a network that gives far more than is read of it: the hidden states of all layers (`output_hidden_states=True`) or their attention
    maps (`output_attentions=True`), of which nobody reads any, or only the last hidden state; and a language model's logits of all
    positions, of which one is read for each sequence, or none.

    With a doubt it also tells of logits of a network that is not known to score a vocabulary.

    ## Why is this bad
    What a forward gives is made, and stays until the last name of the output goes. Without grad a layer's hidden states could go as soon as
    the next layer has run; with grad the graph needs them anyway: nothing is said there. Attention maps are only made where a fused kernel is
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
    attention may round otherwise. Logits have none, nor hidden states of which the last is read.
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
                for at, part, is_read in _unread(asked.evaluator, forward):
                    answers = until_refuted(_answers(asked, forward, part))
                    report = partial(_report, asked, forward, at, part, is_read)
                    yield Claimed(at, part, answers, report)


def _unread(evaluator: Evaluator, forward: Forward) -> Iterator[tuple[Any, str, bool]]:
    """The parts that a forward gives and of which nobody reads more than the last, each with the place that asks for it, and with
    whether that one is read."""
    found = consumers(evaluator, forward.call, forward.frame, "object")
    uses = [one for one in found if one.role not in _IDLE]
    items = (constant_index(one.node.slice) for one in uses if one.name == "item")
    known = all(one.role == "attribute" for one in uses) and all(one == 0 for one in items)
    if not known or evaluator.is_dead(forward.call, forward.frame):
        return
    given = {str(one.arg): one.value for one in forward.call.keywords}
    for word, part in _ASKED.items():
        read = [one for one in uses if one.name.endswith(part)]
        unread = all(part == "hidden_states" and _is_last(evaluator, one, 0) for one in read)
        if unread and getattr(given.get(word), "value", None) is True:
            yield given[word], part, bool(read)
    names = {one.name for one in uses}
    outputs = evaluator.table.knows("module.outputs").keys()
    none_read = bool(names) and names <= outputs and scores_words(evaluator, forward)
    if (names == {"logits"} or none_read) and given.keys().isdisjoint(_FEWER):
        if all(_is_last(evaluator, one, 1) for one in uses if one.name == "logits"):
            yield forward.call, "logits", "logits" in names


def _is_last(evaluator: Evaluator, use: Use, axis: int) -> bool:
    """Whether of a part nothing is read but the last along an axis, or one place of each row: `logits[torch.arange(rows), lengths]`."""
    uses = consumers(evaluator, use.node, use.frame, "object")
    read = (getattr(one.node, "slice", None) for one in uses if one.role not in _IDLE)
    for axes in (getattr(one, "elts", [one]) for one in read):
        by_row = any(last_name(getattr(each, "func", each)) == "arange" for each in axes[:1])
        if not axes[axis:] or not (by_row or constant_index(axes[axis]) == -1):
            return False
    return True


def _answers(asked: Asked, forward: Forward, part: str) -> Iterator[Answer]:
    evaluator, call, frame, network = asked.evaluator, forward.call, forward.frame, forward.network
    if part == "logits" and not scores_words(evaluator, forward):
        yield left_open(Question.SIZE, "how many words the network scores is not seen")
    if part != "logits" and evaluator.method(network.ref, "forward") is not None:
        yield refuted(Question.READS, "the network is the program's own, and may read what it is asked for")
    if not network.calls or any(keyword(one, "trust_remote_code") for one, _ in network.calls):
        yield left_open(Question.READS, "the network may have code of its own, which reads it")
    if part == "hidden_states" and grad_mode(evaluator, call, frame).mode != "off":
        yield refuted(Question.GRAD, "where grad is on, the graph keeps what every layer gives")
    if not any(through_batches(evaluator, run) for run in runs_of(evaluator, call, frame)):
        yield left_open(Question.REPEATS, "that batches go through the network is not seen")
    yield from (left_open(Question.TENSOR, one.clause) for one in network.assumptions)
    yield from reached(evaluator, frame.function)


def _report(asked: Asked, forward: Forward, at: Any, part: str, is_read: bool) -> Report:
    what = "scores of all positions" if part == "logits" else f"{part.replace('_', ' ')} of all layers"
    return Report(
        at,
        f"`{asked.called(forward.call)}` gives the {what}, of which nobody reads more than {'one' if part == 'logits' else 'the last'}",
        "no use of its output goes to the rest",
        _OF_WORDS if part == "logits" else _OF_LAYERS,
        repair=None if is_read or part == "logits" else partial(_repair, asked, forward.call, at),
    )


def _repair(asked: Asked, call: ast.Call, asks: Any) -> Repair:
    whole: Any = asked.node(call)
    argument = next(one for one in whole.args if one.value is asked.node(asks))
    name = argument.keyword.value
    why = "another kernel for attention may round otherwise" if name == "output_attentions" else ""
    return Repair.unless(why, f"remove `{name}=True`", (Remove(argument),))
