import torch.nn.functional as F
from transformers import Trainer


class ContrastiveTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        a = model(**inputs["a"]).pooler_output
        b = model(**inputs["b"]).pooler_output
        sim = F.normalize(a) @ F.normalize(b).t() / 0.05
        align = (a - b).pow(2).mean()
        loss = sim.logsumexp(1).mean() - sim.diag().mean() + 0.1 * align
        self.log({"align": align})  # expect: GPU104
        return (loss, sim) if return_outputs else loss
