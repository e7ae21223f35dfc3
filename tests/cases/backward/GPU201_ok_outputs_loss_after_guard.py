import torch
from sklearn.metrics import matthews_corrcoef
from transformers import AutoModelForSequenceClassification


def evaluate(loader, path, device="cuda"):
    model = AutoModelForSequenceClassification.from_pretrained(path).to(device)
    model.eval()
    eval_loss, steps = 0.0, 0
    preds, labels = [], []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        eval_loss += outputs.loss.mean().item()
        preds.extend(outputs.logits.argmax(-1).tolist())
        labels.extend(batch["labels"].tolist())
        steps += 1
    return eval_loss / steps, matthews_corrcoef(labels, preds)
