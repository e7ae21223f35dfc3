import learn2learn as l2l
import torch
from torch import nn, optim


def main(tasksets, model, ways=5, shots=1, meta_bsz=32, device="cuda"):
    maml = l2l.algorithms.MAML(model.to(device), lr=0.5, first_order=False)
    opt = optim.Adam(maml.parameters(), 0.003)
    loss_fn = nn.CrossEntropyLoss(reduction="mean")
    for iteration in range(60000):
        opt.zero_grad()
        meta_err = 0.0
        for _ in range(meta_bsz):
            learner = maml.clone()
            x, y = tasksets.train.sample()
            x, y = x.to(device), y.to(device)
            support, query = x[::2], x[1::2]
            learner.adapt(loss_fn(learner(support), y[::2]))
            err = loss_fn(learner(query), y[1::2])
            err.backward()
            meta_err += err.item()  # maybe: GPU504
        for p in maml.parameters():
            p.grad.data.mul_(1.0 / meta_bsz)
        opt.step()
        print(iteration, meta_err / meta_bsz)
