"""Two loops in one function: what the second one sums is gone through by a backward of its own, or by the caller's."""
import torch


def alternate(net, critic, batches, others, criterion, optimizer):
    for x, y in batches:
        optimizer.zero_grad()
        criterion(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
    penalty = 0.0
    for x, y in others:  # maybe: GPU303
        penalty = penalty + criterion(critic(x.cuda()), y.cuda())  # maybe: GPU303
    optimizer.zero_grad()
    penalty.backward()
    optimizer.step()


def warm_then_score(net, batches, others, criterion, optimizer):
    for x, y in batches:
        optimizer.zero_grad()
        criterion(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
    score = torch.zeros((), device="cuda")
    for x, y in others:
        score = score + criterion(net(x.cuda()), y.cuda())
    return score
