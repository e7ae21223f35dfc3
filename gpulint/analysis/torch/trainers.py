"""transformers' trainers: what gathers the outputs of an evaluation, what keeps it from doing so, and which networks give much
for each token."""

from __future__ import annotations

import re
from typing import Final

TRAINERS: Final = frozenset(
    {"transformers.Trainer", "transformers.trainer.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer"}
)
ARGUMENTS: Final = frozenset(
    {
        "transformers.TrainingArguments",
        "transformers.training_args.TrainingArguments",
        "transformers.Seq2SeqTrainingArguments",
        "trl.SFTConfig",
    }
)
# Arguments by which an evaluation does not pile up on the device, whatever is given for them but None and False.
MOVES_ON: Final = frozenset({"eval_accumulation_steps", "prediction_loss_only", "batch_eval_metrics"})
# Methods by which a trainer of one's own takes the evaluation into its own hands.
EVALUATES_ITSELF: Final = frozenset({"evaluation_loop", "prediction_loop", "prediction_step", "evaluate"})
# Arguments that have a trainer evaluate while it trains.
SCHEDULES: Final = frozenset({"evaluation_strategy", "eval_strategy", "do_eval", "evaluate_during_training"})
# Entries of a configuration that put more than the logits into the outputs.
MORE_OUTPUTS: Final = frozenset({"output_hidden_states", "output_attentions"})

# Heads that give a score for each word of a vocabulary, or each class, at each place.
DENSE: Final = re.compile(
    r"For(?:CausalLM|MaskedLM|PreTraining|ConditionalGeneration|Seq2SeqLM|SemanticSegmentation|UniversalSegmentation|"
    r"SpeechSeq2Seq|MaskedImageModeling|ImageToImage)|LMHeadModel|WithLMHead|DoubleHeadsModel"
)
# Heads that give a few numbers for each sample or token.
NARROW: Final = re.compile(
    r"For(?:\w*Classification|QuestionAnswering|MultipleChoice|NextSentencePrediction|AudioFrameClassification|XVector)"
)
