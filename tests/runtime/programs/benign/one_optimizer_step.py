# One step of LBFGS, in which its closure is asked for ever.
# boundary: optimizer
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model(width=64):
    return nn.Sequential(
        nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    ).to(device)


def main():
    model = make_model()
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=500, max_eval=500, tolerance_grad=0, tolerance_change=0, history_size=10
    )
    x, y = torch.randn(64, 32, device=device), torch.randn(64, 4, device=device)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)


if __name__ == "__main__":
    main()
