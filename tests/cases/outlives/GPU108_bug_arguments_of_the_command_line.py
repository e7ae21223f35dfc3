"""The arguments come from the command line, where somebody may give what moves the outputs to the host."""

from transformers import AutoModelForMaskedLM, HfArgumentParser, Trainer, TrainingArguments


def main(train_data, valid_data, compute_metrics):
    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
    trainer = Trainer(  # low: GPU108
        model=model,
        args=arguments,
        train_dataset=train_data,
        eval_dataset=valid_data,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    trainer.evaluate()


def run(network, valid_data, compute_metrics):
    trainer = Trainer(network, TrainingArguments("out"), eval_dataset=valid_data, compute_metrics=compute_metrics)  # low: GPU108
    return trainer.predict(valid_data)
