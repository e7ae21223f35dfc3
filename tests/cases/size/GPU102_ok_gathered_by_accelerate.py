"""One class index for each text is gathered and kept: eight bytes a row."""

import torch
from accelerate import Accelerator
from transformers import AutoModelForSequenceClassification


def evaluate(loader, name, metric):
    accelerator = Accelerator()
    judge = AutoModelForSequenceClassification.from_pretrained(name)
    judge, loader = accelerator.prepare(judge, loader)
    judge.eval()
    guesses, truths = [], []
    for batch in loader:
        with torch.no_grad():
            logits = judge(**batch).logits
        guesses += [accelerator.gather_for_metrics(logits.argmax(-1))]
        truths += [accelerator.gather_for_metrics(batch["labels"])]
    guesses = torch.cat(guesses).cpu().numpy()
    return metric.compute(predictions=guesses, references=torch.cat(truths).cpu().numpy())
