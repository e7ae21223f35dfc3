# Neither an optimizer nor a backward: `torch.autograd.grad` and an update.
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
    for _ in range(100):
        loss = model(torch.randn(16, 32, device=device)).square().mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= 0.01 * gradient


if __name__ == "__main__":
    main()
