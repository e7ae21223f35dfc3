import torch
import torch.nn.functional as F


def dino_loss(student_out, teacher_out, n_crops, temp_s=0.1, temp_t=0.04):
    student = (student_out / temp_s).chunk(n_crops)
    teacher = F.softmax(teacher_out / temp_t, dim=-1).detach().chunk(2)
    total_loss = 0
    n_terms = 0
    for iq, q in enumerate(teacher):
        for v in range(len(student)):
            if v == iq:
                continue
            loss = torch.sum(-q * F.log_softmax(student[v], dim=-1), dim=-1)
            total_loss += loss.mean()
            n_terms += 1
    total_loss /= n_terms
    return total_loss


def train_one_epoch(student, teacher, loader, opt, n_crops):
    for images, _ in loader:
        images = [im.cuda(non_blocking=True) for im in images]
        with torch.no_grad():
            t_out = teacher(torch.cat(images[:2]))
        loss = dino_loss(student(torch.cat(images[:2])), t_out, 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
