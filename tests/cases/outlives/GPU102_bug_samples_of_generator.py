import torch
from tqdm import trange


class FID:
    def __init__(self, inception, generator):
        self.inception, self.generator = inception.cuda().eval(), generator.cuda().eval()

    def statistics(self, n, nz=512, bs=50):
        acts = []
        with torch.inference_mode():
            for _ in trange(n // bs):
                fake = self.generator(torch.randn(bs, nz, device="cuda"))
                acts += [self.inception(fake)[0].flatten(1)]  # low: GPU102
        acts = torch.cat(acts, 0).cpu().numpy()
        return acts.mean(0), acts.T @ acts
