# Neither an optimizer nor a backward: `torch.autograd.grad` and an update.
# boundary: optimizer
import torch
from setting import device, make_model

model = make_model()
for _ in range(100):
    loss = model(torch.randn(16, 32, device=device)).square().mean()
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= 0.01 * gradient
