"""The class of the trainer, and that of its network, are chosen first and go by a name of their own."""

# file: evaluating.py
from transformers import Seq2SeqTrainer


class LoggingTrainer(Seq2SeqTrainer):
    def log(self, logs):
        logs["seen"] = self.state.global_step
        super().log(logs)


# file: finetune.py
import argparse

from evaluating import LoggingTrainer
from transformers import (
    BertForMaskedLM,
    BertForSequenceClassification,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5ForConditionalGeneration,
)

parser = argparse.ArgumentParser()
parser.add_argument("--loud", action="store_true")
parser.add_argument("--heads", type=int, default=0)
options = parser.parse_args()

if options.loud:
    trainer_class = LoggingTrainer
else:
    trainer_class = Seq2SeqTrainer
network_class = T5ForConditionalGeneration
settings = Seq2SeqTrainingArguments("out", eval_strategy="epoch")


def run(train_data, valid_data, count):
    model = network_class.from_pretrained("t5-base")
    trainer = trainer_class(  # expect: GPU108
        model=model, args=settings, train_dataset=train_data, eval_dataset=valid_data, compute_metrics=count
    )
    trainer.train()


def run_either(train_data, valid_data, count):
    kind = BertForSequenceClassification if options.heads else BertForMaskedLM
    model = kind.from_pretrained("bert-base-uncased")
    trainer = LoggingTrainer(  # low: GPU108
        model=model, args=settings, train_dataset=train_data, eval_dataset=valid_data, compute_metrics=count
    )
    trainer.train()
