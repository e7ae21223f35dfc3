from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.rules.detect.placing.trainers import Made

    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered

_NEVER = 1000  # no argument stands there: it is given by name


class TrainerEvalGathers(Rule):
    """
    ## What it does
    Finds transformers' `Trainer` with `compute_metrics`, without `preprocess_logits_for_metrics` and without
    `eval_accumulation_steps`, where the network gives much for each sample: a score for each word of a vocabulary or each
    class of a pixel, hidden states or attentions. Classifiers, which give a few numbers, are not reported, nor what
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
    severity = Severity.WARNING
    runtime_claim = Claim("gathered")
    triggers = ((b"compute_metrics",), (b"Trainer",), (b"transformers", b"trl"))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.placing.trainers import gathering_trainers

        yield from considered(found for _, found in facts.ask(gathering_trainers))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.placing.trainers import gathering_trainers

        found = facts.ask(gathering_trainers)
        yield from told((replace(one, repair=partial(_repair, facts, made)) for made, one in found), set())


def _repair(facts: FileFacts, made: Made) -> Repair | None:
    """`eval_accumulation_steps` for arguments that are made in this file: the metrics are computed of the same arrays."""
    from gpulint.rules.detect.placing.trainers import arguments_made

    from gpulint.fix.nodes import with_argument

    call = arguments_made(facts.analysis, made)
    if call is None:
        return None
    new = with_argument(call.node, "eval_accumulation_steps", "1", position=_NEVER)
    why = "what the GPU no longer holds the host must, and each batch waits for its copy"
    return Repair("unsafe", "move each batch's outputs to the host", (Replace(call.node, new),), why)
