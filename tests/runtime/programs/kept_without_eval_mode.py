# A test loop that never leaves train mode, under no_grad.
# holder: list `predictions` in `main()`
# line: predictions.append(model(torch.randn(4096, 32, device=device)))
# kind: eval
# window: evaluation
# bytes: 196608
import torch
from setting import device, train_some, training


def main():
    model, optimizer = training()
    predictions = []
    for _ in range(100):
        train_some(model, optimizer)
        with torch.no_grad():
            for _ in range(3):
                predictions.append(model(torch.randn(4096, 32, device=device)))


main()
