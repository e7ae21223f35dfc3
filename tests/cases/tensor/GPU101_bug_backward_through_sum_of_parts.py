"""`(near + far).backward()` of losses made elsewhere: each summand is a tensor with a graph."""

from tasks import Task


def train(task: Task, documents, optimizer, weight):
    near_total, far_total, count = 0.0, 0.0, 0
    for document in documents:
        optimizer.zero_grad()
        found = task.score(document)
        near = task.near(found.pairs, found.answers)
        far = task.far(found.spans)
        (near + weight * far).backward()
        optimizer.step()
        near_total += near  # note: GPU101
        far_total += far.item()
        count += 1
    import torch

    return near_total / torch.tensor(count), far_total / count
