from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import in_text_order
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.nodes import argument, called_on, keyword, last_name
from gpulint.answers import Answer, Question, left_open, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

# Arguments by which an evaluation does not pile up on the device, or gathers little.
_SPARES: Final = ("batch_eval_metrics", "eval_accumulation_steps", "prediction_loss_only", "predict_with_generate", "preprocess_logits_for_metrics")  # fmt: skip
# Heads that give a score for each word of a vocabulary, or each class, at each place.
_DENSE: Final = re.compile(
    r"For(?:CausalLM|MaskedLM|PreTraining|ConditionalGeneration|Seq2SeqLM|SemanticSegmentation|UniversalSegmentation|"
    r"SpeechSeq2Seq|MaskedImageModeling|ImageToImage)|LMHeadModel|WithLMHead|DoubleHeadsModel"
)


class TrainerEvalGathers(Rule):
    """
    ## What it does
    Finds transformers' `Trainer` with `compute_metrics`, where the network gives much for each sample: a score for each word of a
    vocabulary or each class of a pixel. Nothing is said of others, nor in a file that names what moves the outputs on or makes them few:
    `eval_accumulation_steps`, `preprocess_logits_for_metrics`, `predict_with_generate`.

    With doubts, each in words, it also tells of trainers whose arguments come from a file or the command line, and of those whose
    network is not in sight.

    ## Why is this bad
    The trainer keeps the outputs of the whole evaluation on the GPU before it hands them to `compute_metrics`, and joins each
    batch to all before it: twice that for a moment. Training fits, and the first evaluation runs out of memory.

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
                metrics = keyword(call, "compute_metrics")
                computed = metrics is not None and asked.evaluator.value_of(metrics, frame).kind != "none"
                if computed and _gives(asked, call, frame, "trainer"):
                    answers = until_refuted(_answers(asked, call, frame))
                    yield Claimed(call, last_name(call.func), answers, partial(_report, asked, call, frame))


def _lineages(asked: Asked, call: ast.Call, frame: Frame) -> list[Any]:
    """The classes that a call may make an object of, each with what it derives from: those of libraries by their names."""
    func = called_on(call) if last_name(call.func).startswith("from_") else None
    found = [one.ref for one in asked.evaluator.ways(func or call.func, frame)]
    return [asked.program.lineage(one) if isinstance(one, Class) else (one,) for one in found]


def _gives(asked: Asked, call: ast.Call, frame: Frame, what: str) -> bool:
    kinds = (kind for several in _lineages(asked, call, frame) for kind in several)
    rows = (asked.evaluator.table.function(kind) for kind in kinds)
    return any(row is not None and row.gives == what for row in rows)


def _settings(asked: Asked, call: ast.Call, frame: Frame) -> list[tuple[ast.Call, Frame]]:
    """The calls that make the settings of a trainer, in order."""
    given = argument(call, 1, "args")
    made = asked.evaluator.value_of(given, frame).calls if given is not None else ()
    return [(one, where) for one, where in in_text_order(made) if _gives(asked, one, where, "settings")]


def _answers(asked: Asked, call: ast.Call, frame: Frame) -> Iterator[Answer]:
    for name in _SPARES:
        if name in asked.file.words:
            yield refuted(Question.OUTLIVES, f"the file knows of `{name}`")
    settings = [one.keywords for one, _ in _settings(asked, call, frame)]
    if not settings or any(one.arg is None for each in (call.keywords, *settings) for one in each):
        yield left_open(Question.OUTLIVES, "arguments that are not seen may set `eval_accumulation_steps`")
    network = argument(call, 0, "model")
    made = asked.evaluator.value_of(network, frame).calls if network is not None else []
    classes = [kinds for one, where in made for kinds in _lineages(asked, one, where)]
    dense = [_DENSE.search(str(kinds)) is not None for kinds in classes]
    if dense and not any(dense):
        yield refuted(Question.SIZE, "a few numbers for each sample or token")
    elif not dense or not all(dense):
        yield left_open(Question.SIZE, "how much the network gives for each sample, the code does not say")
    yield from reached(asked.evaluator, frame.function)


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
        repair=partial(_repair, asked, call, frame),
    )


def _repair(asked: Asked, call: ast.Call, frame: Frame) -> Repair | None:
    """`eval_accumulation_steps` for arguments that are made in this file: the metrics are computed of the same arrays."""
    from gpulint.fix.nodes import with_argument

    made = [asked.node(one) for one, where in _settings(asked, call, frame) if asked.is_here(where)]
    changes = tuple(Replace(one, with_argument(one, "eval_accumulation_steps", "1")) for one in made[:1])
    why = "what the GPU no longer holds the host must, and each batch waits for its copy"
    return Repair("unsafe", "move each batch's outputs to the host", changes, why) if changes else None
