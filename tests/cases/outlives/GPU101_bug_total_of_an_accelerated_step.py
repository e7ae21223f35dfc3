"""The step goes backward by the accelerator and returns its loss as it is; the loop adds it up over the whole training."""

import torch
from accelerate import Accelerator


class Finetuning:
    def __init__(self, model, optimizer, loader, accumulate=8):
        self.accelerator = Accelerator(gradient_accumulation_steps=accumulate)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)

    def training_step(self, inputs):
        self.model.train()
        with self.accelerator.autocast():
            loss = self.model(**inputs).loss
        self.accelerator.backward(loss)
        return loss

    def train(self, epochs):
        tr_loss, step = torch.tensor(0.0, device=self.accelerator.device), 0
        for _ in range(epochs):
            for inputs in self.loader:
                with self.accelerator.accumulate(self.model):
                    tr_loss += self.training_step(inputs)  # expect: GPU101
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                step += 1
        return tr_loss.item() / step
