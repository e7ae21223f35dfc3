import torch
import torch.nn.functional as F


def distill(student, teacher, loader, opt, T=4.0, device="cuda"):
    teacher.to(device).eval()
    student.to(device).train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        s = student(x)
        t = teacher(x)  # expect: GPU202
        kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t.detach() / T, 1), reduction="batchmean") * T * T
        loss = 0.9 * kd + 0.1 * F.cross_entropy(s, y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def main(student, teacher, loader):
    distill(student, teacher, loader, torch.optim.Adam(student.parameters()))
