"""The minibatch's statistics come from a function of another file: all but one of them are detached there."""
# file: ppo_text.py
import torch

from text_loss import minibatch_step


def optimise(model, batches, epochs=4):
    model = model.to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    gathered = []
    for _ in range(epochs):
        for batch in batches:
            gathered.append(minibatch_step(model, optimizer, batch))  # expect: GPU101
    return {name: float(torch.stack([s[name].cpu() for s in gathered]).mean()) for name in gathered[0]}
# file: text_loss.py
import torch


def minibatch_step(model, optimizer, batch):
    queries, answers, old, weights = (x.to("cuda") for x in batch)
    logits = model(torch.cat([queries, answers], 1)).logits[:, queries.size(1) - 1 : -1]
    log_probs = logits.log_softmax(-1).gather(2, answers.unsqueeze(-1)).squeeze(-1)
    ratio = (log_probs - old).exp()
    pg = -(ratio * weights).mean()
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    loss = pg - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return dict(
        loss=loss.detach(),
        pg=pg.detach(),
        entropy=entropy,
        kl=(log_probs - old).pow(2).mean().detach(),
    )
