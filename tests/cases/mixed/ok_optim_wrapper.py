import torch


class BaseModel(torch.nn.Module):
    def parse_losses(self, losses):
        log_vars = {k: v.mean() for k, v in losses.items()}
        loss = sum(v for k, v in log_vars.items() if "loss" in k)
        log_vars["loss"] = loss
        return loss, {k: v.item() for k, v in log_vars.items()}  # maybe: GPU504

    def train_step(self, data, optim_wrapper):
        losses = self(data["inputs"].cuda(), data["samples"])
        loss, log_vars = self.parse_losses(losses)
        optim_wrapper.update_params(loss)
        return log_vars


def train_loop(model: BaseModel, loader, optim_wrapper):
    history = []
    for data in loader:
        history.append(model.train_step(data, optim_wrapper))
    return history
