from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
import torch

model = SGDClassifier(loss="log_loss")
history = []
total_loss = 0.0


def run(batches, classes):
    global total_loss
    for X, y in batches:
        X = X.numpy() if torch.is_tensor(X) else X
        model.partial_fit(X, y, classes=classes)
        output = model.predict_proba(X)
        loss = log_loss(y, output)
        history.append(loss)
        total_loss += loss
    return total_loss / len(history)
