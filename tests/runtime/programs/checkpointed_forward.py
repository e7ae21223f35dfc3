# holder: list `losses` in `train()`
# line: losses.append(loss)
# graph: yes
from setting import batch, encoder_and_head
from torch import nn
from torch.utils.checkpoint import checkpoint


def train():
    encoder, head, optimizer = encoder_and_head()
    losses = []
    for _ in range(1000):
        x, y = batch()
        hidden = checkpoint(encoder, x.requires_grad_(), use_reentrant=True)
        loss = nn.functional.cross_entropy(head(hidden), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)


train()
