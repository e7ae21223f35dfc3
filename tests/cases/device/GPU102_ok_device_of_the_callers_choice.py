import torch


class Encoder:
    def __init__(self, model: torch.nn.Module):
        self.model = model.cuda().eval()

    @torch.no_grad()
    def encode(self, batches, output_device=None):
        found = []
        for batch in batches:
            out = self.model(batch.cuda())
            out = out.to(output_device)
            found.append(out)
        return torch.cat(found)
