# Served requests: a tensor that grows within each, and is kept beyond it.
# holder: dict `sessions[...]` in `main()`
# line: sessions[number] = answer(model)
# kind: eval
# window: call of `answer()`
# bytes: 20480
import torch
from setting import device, make_model


def answer(model):
    past = torch.empty(0, 4, device=device)
    with torch.inference_mode():
        for _ in range(5):
            past = torch.cat([past, model(torch.randn(256, 32, device=device))])
    return past


def main():
    model = make_model().eval()
    sessions = {}
    for number in range(100):
        sessions[number] = answer(model)


main()
