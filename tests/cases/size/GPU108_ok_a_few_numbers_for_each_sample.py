"""Classifiers give a few numbers for each sample, and generating gives the numbers of the words."""

from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
    TrainingArguments,
)


def classify(train_data, valid_data, compute_metrics):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=3)
    arguments = TrainingArguments("out", evaluation_strategy="epoch")
    trainer = Trainer(model, arguments, train_dataset=train_data, eval_dataset=valid_data, compute_metrics=compute_metrics)
    trainer.train()


def translate(train_data, valid_data, compute_metrics):
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
    arguments = Seq2SeqTrainingArguments("out", evaluation_strategy="epoch", predict_with_generate=True)
    trainer = Seq2SeqTrainer(
        model, arguments, train_dataset=train_data, eval_dataset=valid_data, compute_metrics=compute_metrics
    )
    trainer.train()
