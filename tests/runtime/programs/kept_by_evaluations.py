# Three batches an evaluation, too few of them to see growth from one to the next.
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
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                predictions.append(model(torch.randn(4096, 32, device=device)))


main()
