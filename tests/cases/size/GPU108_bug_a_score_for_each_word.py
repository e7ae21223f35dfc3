"""A network that segments gives scores for each place of a picture, and its trainer keeps them all."""

from transformers import AutoModelForSemanticSegmentation, Trainer, TrainingArguments


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        out = model(**inputs)
        return (2 * out.loss, out) if return_outputs else 2 * out.loss


def segment(train_data, valid_data, compute_metrics):
    model = AutoModelForSemanticSegmentation.from_pretrained("nvidia/mit-b0")
    trainer = Weighted(model, TrainingArguments("out"), eval_dataset=valid_data, compute_metrics=compute_metrics)  # expect: GPU108
    return trainer.evaluate()
