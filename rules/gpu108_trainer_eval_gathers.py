from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import argument, called_on, keyword, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

Made = tuple[ast.Call, Frame]  # what makes something, and where

_NEVER: Final = 1000  # no argument stands there: it is given by name

# Arguments by which an evaluation does not pile up on the device, whatever is given for them but None and False.
_MOVES_ON: Final = ("batch_eval_metrics", "eval_accumulation_steps", "prediction_loss_only")
# Arguments that have a trainer evaluate while it trains.
_SCHEDULES: Final = ("do_eval", "eval_strategy", "evaluate_during_training", "evaluation_strategy")
# Methods by which a trainer of one's own takes the evaluation into its own hands.
# Entries of a configuration that put more than the logits into the outputs.
# Heads that give a score for each word of a vocabulary, or each class, at each place.
_DENSE: Final = re.compile(
    r"For(?:CausalLM|MaskedLM|PreTraining|ConditionalGeneration|Seq2SeqLM|SemanticSegmentation|UniversalSegmentation|"
    r"SpeechSeq2Seq|MaskedImageModeling|ImageToImage)|LMHeadModel|WithLMHead|DoubleHeadsModel"
)
# Heads that give a few numbers for each sample or token.
_NARROW: Final = re.compile(
    r"For(?:\w*Classification|QuestionAnswering|MultipleChoice|NextSentencePrediction|AudioFrameClassification|XVector)"
)


class TrainerEvalGathers(Rule):
    """
    ## What it does
    Finds transformers' `Trainer` with `compute_metrics`, without `preprocess_logits_for_metrics` and without
    `eval_accumulation_steps`, where the network gives much for each sample: a score for each word of a vocabulary or each
    class of a pixel. Classifiers, which give a few numbers, are not reported, nor what
    generates (`predict_with_generate`).

    With doubts, each in words, it also tells of trainers whose arguments come from a file or the command line, whose network is
    not in sight, or that evaluate in a way of their own.

    ## Why is this bad
    The trainer keeps the outputs of the whole evaluation on the GPU before it hands them to `compute_metrics`, and joins each
    batch to all before it: twice that for a moment. Training fits, and the first evaluation runs out of memory. With
    hidden states in the outputs that is an *error*.

    ## What it costs
    The trainer's loop for a 4-layer language model, batches of 16 × 256 tokens with 32,000 words (NVIDIA H200, torch 2.11):

    | | grows with each batch | peak | reserved | a batch |
    |---|---|---|---|---|
    | nothing given | 500 MiB | 15.8 GiB after 16 batches | 67.2 GiB | 8.92 ms |
    | hidden states too | 508 MiB | 16.1 GiB | 67.2 GiB | 8.97 ms |
    | `eval_accumulation_steps=1` | 0 B | 681 MiB | 822 MiB | 357 ms |
    | `eval_accumulation_steps=4` | 0 B | 4.1 GiB | 5.7 GiB | 6.57 ms, and the copies every fourth |
    | `preprocess_logits_for_metrics` | 0 B | 682 MiB | 824 MiB | 6.11 ms |

    ## Example
    ```python
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def finetune(train_data, valid_data, compute_metrics):
        model = AutoModelForCausalLM.from_pretrained("gpt2")
        arguments = TrainingArguments("out", eval_strategy="epoch")
        trainer = Trainer(
            model,
            arguments,
            train_dataset=train_data,
            eval_dataset=valid_data,
            compute_metrics=compute_metrics,
        )
        trainer.train()
    ```

    ## Use instead
    ```python
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    def finetune(train_data, valid_data, compute_metrics):
        model = AutoModelForCausalLM.from_pretrained("gpt2")
        arguments = TrainingArguments("out", eval_strategy="epoch", eval_accumulation_steps=1)
        trainer = Trainer(
            model,
            arguments,
            train_dataset=train_data,
            eval_dataset=valid_data,
            compute_metrics=compute_metrics,
        )
        trainer.train()
    ```

    Better where the metrics allow it: `preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)`.

    ## Fix safety
    Unsafe: what the GPU no longer holds, the host must, and each batch waits for its copy. The metrics are the same.
    Offered where the arguments are made in the same file.
    """

    code = "GPU108"
    name = "trainer-eval-gathers"
    runtime_claim = Claim("gathered")
    triggers = ((b"compute_metrics",), (b"Trainer",), (b"transformers", b"trl"))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in asked.file.parts:
            frame = asked.root(function)
            for call in function.flow.every_call:
                kinds = _kinds(asked, call, frame) if keyword(call, "compute_metrics") is not None else []
                if any(_gives(asked, one, "trainer") for one in kinds):
                    answers = until_refuted(_answers(asked, call, frame, kinds))
                    yield Claimed(call, last_name(call.func), answers, partial(_report, asked, call, frame))


def _kinds(asked: Asked, call: ast.Call, frame: Frame) -> list[Any]:
    """The classes that a call may make an object of, with what they derive from: those of libraries by their names."""
    func = called_on(call) if last_name(call.func).startswith("from_") else None
    found = [one.ref for one in asked.evaluator.ways(func or call.func, frame)]
    several = (asked.program.lineage(one) if isinstance(one, Class) else (one,) for one in found)
    return [base for bases in several for base in bases]


def _gives(asked: Asked, kind: Any, what: str) -> bool:
    row = asked.evaluator.table.function(kind)
    return row is not None and row.gives == what


def _answers(asked: Asked, call: ast.Call, frame: Frame, kinds: list[Any]) -> Iterator[Answer]:
    metrics, trainer = keyword(call, "compute_metrics"), [(call, frame)]
    if not _given(asked, trainer, "compute_metrics"):
        yield refuted(Question.READS, "no metrics are computed: no outputs are kept")
    elif isinstance(metrics, (ast.IfExp, ast.BoolOp)) or any(one.arg is None for one in call.keywords):
        yield left_open(Question.READS, "whether `compute_metrics` is given is decided elsewhere")
    else:
        yield proven(Question.READS, "metrics are computed of all outputs at once")
    if _given(asked, trainer, "preprocess_logits_for_metrics"):
        yield refuted(Question.OUTLIVES, "`preprocess_logits_for_metrics` reduces the outputs batch by batch")
    arguments = _arguments(asked, call, frame)
    yield _kept(asked, arguments)
    yield _size(asked, call, frame, kinds, arguments)
    if any(True for name in ("evaluate", "predict") for _ in asked.file.calls_named(name)):
        yield proven(Question.REACHED, "the program evaluates")
    elif given := _given(asked, arguments, *_SCHEDULES):
        yield proven(Question.REACHED, "it evaluates while it trains", given[0])
    else:
        yield left_open(Question.REACHED, "whether it evaluates at all is not shown")
    yield from reached(asked.evaluator, frame.function)


def _given(asked: Asked, calls: list[Made], *names: str) -> list[ast.expr]:
    """What calls give by these names, other than what says no."""
    found = [(keyword(call, name), frame) for call, frame in calls for name in names]
    given = [(one, asked.evaluator.value_of(one, frame)) for one, frame in found if one is not None]
    return [one for one, value in given if value.const not in (None, False, "no")]


def _made_by(asked: Asked, node: Any, frame: Frame) -> list[Made]:
    """The calls that make what an expression stands for, in order."""
    found = asked.evaluator.value_of(node, frame).calls if node is not None else []
    return sorted(found, key=lambda one: (one[1].function.file.path, one[0].lineno, one[0].col_offset))


def _arguments(asked: Asked, call: ast.Call, frame: Frame) -> list[Made]:
    """The calls that make the settings of a trainer."""
    made = _made_by(asked, argument(call, 1, "args"), frame)
    return [one for one in made if any(_gives(asked, kind, "settings") for kind in _kinds(asked, *one))]


def _kept(asked: Asked, arguments: list[Made]) -> Answer:
    keys = (key for one in asked.file.parts for key in one.flow.definitions if "." in key)
    changed = {key.rpartition(".")[2] for key in keys}
    for name in _MOVES_ON:
        given = _given(asked, arguments, name)
        if given or name in changed:
            return refuted(Question.OUTLIVES, f"`{name}` is given", given[0] if given else None)
    if not arguments or any(one.arg is None for call, _ in arguments for one in call.keywords):
        return left_open(Question.OUTLIVES, "arguments that are not seen may set `eval_accumulation_steps`")
    clause = "without `eval_accumulation_steps` all outputs stay on the GPU to the end"
    return proven(Question.OUTLIVES, clause)


def _size(asked: Asked, call: ast.Call, frame: Frame, kinds: list[Any], arguments: list[Made]) -> Answer:
    if generates := _given(asked, arguments, "predict_with_generate"):
        return refuted(Question.SIZE, "it gathers the numbers of generated tokens", generates[0])
    made = list(_makers(asked, argument(call, 0, "model"), frame))
    named = [(one, f"{last_name(one.func)} {_kinds(asked, one, at)}") for one, at in made]
    dense, narrow = ([one for one, names in named if heads.search(names)] for heads in (_DENSE, _NARROW))
    if dense and narrow:
        clause = "of the networks that it may be, some give only a few numbers for each sample"
        return left_open(Question.SIZE, clause, narrow[0])
    if dense:
        return proven(Question.SIZE, "a score for each class at each place", dense[0])
    if narrow:
        return refuted(Question.SIZE, "a few numbers for each sample or token", narrow[0])
    clause = "how large the network's output for each sample is, the code does not say"
    return left_open(Question.SIZE, clause)


def _makers(asked: Asked, network: Any, frame: Frame, depth: int = 3) -> Iterator[Made]:
    """The calls that make a network, and what those are given that wrap one: `get_peft_model(model, config)`."""
    for call, where in _made_by(asked, network, frame):
        yield call, where
        for one in call.args if depth else ():
            yield from _makers(asked, one, where, depth - 1)


def _report(asked: Asked, call: ast.Call, frame: Frame) -> Report:
    return Report(
        call,
        f"`{last_name(call.func)}` keeps the network's outputs of all evaluation batches on the GPU until `compute_metrics` gets them",
        "the memory grows with each batch: have `preprocess_logits_for_metrics` keep only what the metrics need, or "
        "`eval_accumulation_steps` move it to the host",
        Cost(
            "every output of the evaluation, twice while a batch is joined to them",
            "15.8 GiB at the peak after 16 batches of 500 MiB, 681 MiB with `preprocess_logits_for_metrics`, for a 4-layer language model; H200, torch 2.11",
        ),
        repair=lambda: _repair(asked, call, frame),
    )


def _repair(asked: Asked, call: ast.Call, frame: Frame) -> Repair | None:
    """`eval_accumulation_steps` for arguments that are made in this file: the metrics are computed of the same arrays."""
    from gpulint.fix.nodes import with_argument

    for made, where in _arguments(asked, call, frame):
        if asked.is_here(where):
            old = asked.node(made)
            new = with_argument(old, "eval_accumulation_steps", "1", position=_NEVER)
            why = "what the GPU no longer holds the host must, and each batch waits for its copy"
            return Repair("unsafe", "move each batch's outputs to the host", (Replace(old, new),), why)
    return None
