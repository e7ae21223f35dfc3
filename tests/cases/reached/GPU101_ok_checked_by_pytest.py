"""A test keeps the losses of its hundred steps to compare them: nobody minds their graphs."""
import pytest
import torch
from torch import nn


@pytest.mark.parametrize("fused", [False, True])
def test_losses_fall(fused):
    model = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    loader = [torch.randn(4, 8).cuda() for _ in range(100)]
    losses = []
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        torch.cuda.empty_cache()
    assert losses[-1] < losses[0]
