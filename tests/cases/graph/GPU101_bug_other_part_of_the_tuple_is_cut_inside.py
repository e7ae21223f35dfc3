# The chosen rewards come detached out of a method of the same class, the others with their graph; both are put by for the log.
import torch
import torch.nn.functional as F
from transformers import Trainer


class PreferenceTrainer(Trainer):
    def preference_loss(self, chosen, rejected):
        margin = chosen - rejected
        if self.kind == "sigmoid":
            losses = -F.logsigmoid(self.beta * margin)
        else:
            losses = torch.relu(1 - self.beta * margin)
        chosen_rewards = self.beta * (chosen - chosen.mean()).detach()
        rejected_rewards = self.beta * rejected
        return losses, chosen_rewards, rejected_rewards

    def batch_metrics(self, model, batch):
        metrics = {}
        chosen, rejected = self.forward_pair(model, batch)
        losses, chosen_rewards, rejected_rewards = self.preference_loss(chosen, rejected)
        metrics["rewards/chosen"] = chosen_rewards.cpu().mean()
        metrics["rewards/rejected"] = rejected_rewards.cpu().mean()  # low: GPU101
        metrics["logps/chosen"] = chosen.detach().cpu().mean()
        return losses.mean(), metrics

    def compute_loss(self, model, inputs, return_outputs=False):
        loss, metrics = self.batch_metrics(model, inputs)
        self.store_metrics(metrics)
        return (loss, metrics) if return_outputs else loss

    def store_metrics(self, metrics):
        for key, value in metrics.items():
            self.stored[key].append(value)
