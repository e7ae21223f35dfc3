"""A network by all that is done to it; its class is not seen, so its method may well guard itself."""

import torch
from tqdm import tqdm


class Examiner:
    def __init__(self, model, loader, checkpoint, device="cuda:0"):
        self.device = torch.device(device)
        self.model = model
        self.model.load_state_dict(torch.load(checkpoint, map_location="cpu"))
        self.model.to(self.device)
        self.loader = loader

    def run(self):
        self.model.eval()
        hits, rows, losses = 0, 0, []
        for batch in tqdm(self.loader):
            batch = {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}
            result = self.model.evaluation_step(batch)  # low: GPU201
            losses.append(result["loss"].item())
            hits += (result["scores"].argmax(-1) == batch["label"]).sum().item()
            rows += len(batch["label"])
        return {"loss": sum(losses) / len(losses), "accuracy": hits / rows}
