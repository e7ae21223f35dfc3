# One step of LBFGS, in which its closure is asked for ever.
# boundary: optimizer
import torch
from setting import device, make_model

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
