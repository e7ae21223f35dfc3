"""Each batch's outputs become numbers at once, or go to the host; or none are kept."""

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def largest(logits, labels):
    return logits.argmax(-1)


def finetune(train_data, valid_data, compute_metrics):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    plain = TrainingArguments("out", eval_strategy="epoch")
    moved = TrainingArguments("out", eval_strategy="epoch", eval_accumulation_steps=4)
    losses = TrainingArguments("out", eval_strategy="epoch", prediction_loss_only=True)
    data = {"train_dataset": train_data, "eval_dataset": valid_data}
    Trainer(
        model, plain, preprocess_logits_for_metrics=largest, compute_metrics=compute_metrics, **data
    ).train()
    Trainer(model, moved, compute_metrics=compute_metrics, **data).train()
    Trainer(model, losses, compute_metrics=compute_metrics, **data).train()
    Trainer(model, plain, compute_metrics=None, **data).train()
