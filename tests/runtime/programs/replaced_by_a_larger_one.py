# One tensor, made anew of itself and of what comes.
# holder: tensor `predictions` in `main()`
# line: predictions = torch.cat([predictions, torch.randn(256, 4, device=device)])
# bytes: 4096
import torch
from setting import device, train_some, training


def main():
    model, optimizer = training()
    predictions = torch.empty(0, 4, device=device)
    for _ in range(100):
        train_some(model, optimizer, 1)
        predictions = torch.cat([predictions, torch.randn(256, 4, device=device)])


main()
