"""Networks and inputs that are on the CPU whatever GPU there is, in a file that uses one elsewhere."""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def exported_equals(model, session, batch):
    model.cpu().eval()
    expected = model(batch)
    return np.abs(expected.detach().tolist() - session.run(None, {"x": batch.tolist()})[0]).max()


class Query:
    def __init__(self, model, loss_fn):
        self.model = model
        self.loss_fn = loss_fn

    def logits(self, rows):
        self.model.eval()
        return self.model(torch.tensor(rows)).detach().tolist()

    def losses(self, batch, labels):
        self.model.eval()
        return self.loss_fn(self.model(batch), labels).detach().numpy()

    def features(self, batches):
        self.model.eval()
        kept = []
        for batch in batches:
            out = self.model(batch)
            out = out.detach().flatten(1)
            kept.append(out.numpy())
        return kept


class Rewriter:
    def __init__(self, load):
        self.coder = load("coder")
        self.coder.eval()
        self.coder = self.coder.cpu()

    def rewrite(self, words):
        out = self.coder(torch.as_tensor(words, device="cpu"))
        return out.argmax(-1).tolist()
