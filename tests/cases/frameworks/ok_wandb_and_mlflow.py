import mlflow
import wandb
from torch import nn


def train(model, loader, opt):
    wandb.init(project="demo")
    wandb.watch(model)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        wandb.log({"loss": loss, "lr": opt.param_groups[0]["lr"]}, step=step)
        mlflow.log_metric("loss", float(loss), step=step)
