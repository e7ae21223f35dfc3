"""The class of a network goes by another name, and gives a few numbers; or another name stands for no trainer at all."""

from transformers import BertForSequenceClassification, Trainer, TrainingArguments

from scoring import Scorer

network_class = BertForSequenceClassification
trainer_class = Trainer
settings = TrainingArguments("out", eval_strategy="epoch")


def run(train_data, valid_data, count):
    model = network_class.from_pretrained("bert-base-uncased")
    trainer = trainer_class(
        model=model, args=settings, train_dataset=train_data, eval_dataset=valid_data, compute_metrics=count
    )
    trainer.train()


def score(model, valid_data, count):
    kind = Scorer
    return kind(model=model, args=settings, eval_dataset=valid_data, compute_metrics=count).run()
