# One batch an evaluation.
# holder: list `predictions` in `main()`
# line: predictions.append(model(torch.randn(4096, 32, device=device)))
# kind: eval
# window: evaluation
# bytes: 65536
import torch
from setting import device, train_some, training


def main():
    model, optimizer = training()
    predictions = []
    for _ in range(100):
        train_some(model, optimizer)
        model.eval()
        with torch.no_grad():
            predictions.append(model(torch.randn(4096, 32, device=device)))


main()
