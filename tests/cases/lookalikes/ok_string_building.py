import torch


def format_losses(errors, epoch, i):
    message = "(epoch: %d, iters: %d) " % (epoch, i)
    for k, loss in errors.items():
        message += "%s: %.3f " % (k, loss)
    return message


def train(model, loader, logfile, epochs):
    for epoch in range(epochs):
        log_loss = ""
        for i, data in enumerate(loader):
            model.set_input(data)
            model.optimize_parameters()
            loss = model.get_current_losses()
            log_loss += format_losses(loss, epoch, i) + "\n"
        with open(logfile, "a") as f:
            f.write(log_loss)
        torch.save(model.state_dict(), f"net_{epoch}.pth")
