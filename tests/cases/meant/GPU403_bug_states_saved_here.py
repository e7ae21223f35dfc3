import torch


class Trainer:
    def __init__(self, config, build):
        self.build = build
        self.device = torch.device("cuda", config.gpu) if torch.cuda.is_available() else torch.device("cpu")

    def train(self, loader, optimizer):
        net = self.build().to(self.device)
        for epoch, x in enumerate(loader):
            net(x.to(self.device)).mean().backward()
            optimizer.step()
            self.save_checkpoint(net.state_dict(), f"{epoch}.pt")

    def evaluate(self, path, loader):
        net = self.build()
        state = torch.load(path)  # expect: GPU403
        net.load_state_dict(state)
        net.to(self.device).eval()
        with torch.no_grad():
            return sum(net(x.to(self.device)).sum().item() for x in loader)
