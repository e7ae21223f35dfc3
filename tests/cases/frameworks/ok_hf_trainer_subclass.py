import torch
import torch.nn.functional as F
from transformers import Trainer


class DistillTrainer(Trainer):
    def __init__(self, *args, teacher=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        out = model(**inputs)
        with torch.no_grad():
            t = self.teacher(**inputs).logits
        kd = F.kl_div(F.log_softmax(out.logits, -1), F.softmax(t, -1), reduction="batchmean")
        loss = out.loss + kd
        self.log({"kd": kd.item()})
        return (loss, out) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            out = model(**inputs)
        return out.loss.detach(), out.logits.detach(), inputs["labels"]
