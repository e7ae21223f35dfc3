"""A language model gives a score for each word of its vocabulary at each place; so do networks that are asked for hidden
states, for all that they classify."""

from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSemanticSegmentation,
    Trainer,
    TrainingArguments,
)


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        out = model(**inputs)
        return (2 * out.loss, out) if return_outputs else 2 * out.loss


def finetune(train_data, valid_data, compute_metrics):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    arguments = TrainingArguments("out", eval_strategy="epoch", fp16=True)
    trainer = Trainer(  # expect: GPU108
        model=model,
        args=arguments,
        train_dataset=train_data,
        eval_dataset=valid_data,
        compute_metrics=compute_metrics,
    )
    trainer.train()


def segment(train_data, valid_data, compute_metrics):
    model = AutoModelForSemanticSegmentation.from_pretrained("nvidia/mit-b0")
    trainer = Weighted(model, TrainingArguments("out"), eval_dataset=valid_data, compute_metrics=compute_metrics)  # expect: GPU108
    return trainer.evaluate()
