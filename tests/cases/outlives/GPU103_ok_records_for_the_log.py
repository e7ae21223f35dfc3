from collections import defaultdict

import torch


def train(upstream, loader, opt, writer, log_every):
    upstream.train()
    records = defaultdict(list)
    for step, batch in enumerate(loader):
        loss, records = upstream(batch, records=records, step=step)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % log_every == 0:
            for key, values in records.items():
                writer.add_scalar(key, torch.tensor(values).mean(), step)
            records = defaultdict(list)
