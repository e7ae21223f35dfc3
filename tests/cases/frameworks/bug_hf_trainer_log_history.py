import torch
from transformers import Trainer


class VaeTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        kl = outputs.kl.mean()
        loss = outputs.rec.mean() + self.beta * kl
        self.kls.append(kl)  # expect: GPU101|GPU104
        return (loss, outputs) if return_outputs else loss

    @property
    def beta(self):
        return min(1.0, self.state.global_step / 1000)

    def train(self, *args, **kwargs):
        self.kls = []
        result = super().train(*args, **kwargs)
        print(torch.stack(self.kls).mean().item())
        return result
