"""What a judge is given is text, under a name that a network's output gets later on."""
import torch
from transformers import Trainer


def judged(model, ids):
    backbone = getattr(model, model.base_model_prefix)
    return model.score(backbone(input_ids=ids).last_hidden_state)


class Preferring(Trainer):
    def __init__(self, *args, reward_model=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.reward_model = reward_model.eval()

    def training_step(self, model, inputs):
        output = model.generate(inputs["prompt_ids"])
        all_ids = torch.cat((inputs["prompt_ids"], output), dim=1)
        worth = judged(self.reward_model, all_ids)  # low: GPU202
        first, second = worth.chunk(2)
        better = first >= second
        output = model(all_ids).logits
        likely = torch.log_softmax(output, -1).sum((1, 2)).view(2, -1)
        loss = torch.where(better, likely[1] - likely[0], likely[0] - likely[1]).mean()
        self.accelerator.backward(loss)
        return loss.detach()


class Distilling(Trainer):
    def __init__(self, *args, reward_model=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.reward_model = reward_model.eval()

    def training_step(self, model, inputs):
        hidden = model(inputs["prompt_ids"]).last_hidden_state
        worth = judged(self.reward_model, hidden)
        loss = -worth.mean()
        self.accelerator.backward(loss)
        return loss.detach()
