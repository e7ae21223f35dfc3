import torch
import torch.nn.functional as F


class Evaluator:
    def __init__(self, model, amp=True):
        self.model = model.cuda()
        self.eval_ctx = torch.inference_mode if torch.__version__ >= "1.9" else torch.no_grad
        self.amp = amp

    def __call__(self, loader):
        self.model.eval()
        nll, n = 0.0, 0
        with self.eval_ctx():
            for x, y in loader:
                with torch.autocast("cuda", enabled=self.amp):
                    logits = self.model(x.cuda())
                nll += F.cross_entropy(logits.float(), y.cuda(), reduction="sum").item()
                n += y.numel()
        return nll / n
