"""The same readings as on the CPU, of a network on the GPU: the result is fetched before it becomes an array."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Query:
    def __init__(self, model, loss_fn):
        self.model = model.to(device)
        self.loss_fn = loss_fn

    def logits(self, rows):
        self.model.eval()
        return self.model(torch.tensor(rows).to(device)).detach().cpu().tolist()  # expect: GPU201

    def losses(self, batch, labels):
        self.model.eval()
        batch, labels = batch.to(device), labels.to(device)
        return self.loss_fn(self.model(batch), labels).detach().cpu().numpy()  # expect: GPU201

    def features(self, batches):
        self.model.eval()
        kept = []
        for batch in batches:
            batch = torch.from_numpy(batch)
            if device.type == "cuda":
                batch = batch.cuda()
            out = self.model(batch)  # expect: GPU201
            out = out.detach().flatten(1).cpu()
            kept.append(out.numpy())
        return kept
