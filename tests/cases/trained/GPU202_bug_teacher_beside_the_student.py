"""The teacher runs in the statement of the student's loss: reported, but that statement cannot go under no_grad."""

import torch.nn.functional as F


def distill(student, teacher, loader, optimizer):
    teacher.cuda().eval()
    student.cuda().train()
    for x, _ in loader:
        scores = student(x.cuda())
        loss = F.mse_loss(scores, teacher(x.cuda()).detach())  # expect: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
