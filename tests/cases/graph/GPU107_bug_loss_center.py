import torch
import torch.nn.functional as F


class DinoLoss(torch.nn.Module):
    def __init__(self, dim, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.center = torch.zeros(1, dim, device="cuda")

    def forward(self, student, teacher):
        loss = -(F.softmax(teacher - self.center, -1) * F.log_softmax(student, -1)).sum(-1).mean()
        self.center = self.center * self.momentum + student.mean(0, keepdim=True) * (1 - self.momentum)  # expect: GPU107|GPU101|GPU103
        return loss


def train(student, teacher, loader, opt, dim):
    crit = DinoLoss(dim)
    for x in loader:
        with torch.no_grad():
            t = teacher(x.cuda())
        loss = crit(student(x.cuda()), t)
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
