import torch
import torch.nn.functional as F


def distill(student, teacher, target_net, loader, opt):
    teacher.eval()
    for x, y, x2 in loader:
        with torch.no_grad():
            t = teacher(x.cuda())
            v = target_net(x2.cuda()).amax(1)
        s, q = student(x.cuda())
        loss = F.mse_loss(s, t) + F.mse_loss(q, v)
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def targets(net, x):
    return net(x).softmax(-1)


def mean_teacher(student, ema_model, loader, opt):
    for x, y in loader:
        loss = F.mse_loss(student(x.cuda()).softmax(-1), targets(ema_model, x.cuda()))
        opt.zero_grad()
        loss.backward()
        opt.step()
