import torch
from torch.nn.functional import l1_loss
from torchvision.models import mobilenet_v2

net = mobilenet_v2(num_classes=1).to("cuda")
opt = torch.optim.RMSprop(net.parameters(), 1e-4)
scaler = torch.amp.GradScaler("cuda")


def one_epoch(dl):
    curve, worst = [], []
    for x, t in dl:
        x, t = x.to("cuda"), t.to("cuda")
        with torch.autocast("cuda"):
            l = l1_loss(net(x)[:, 0], t)
        opt.zero_grad()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
        curve.append(l.clone().float())  # expect: GPU101
        worst.append(l.to("cpu"))  # expect: GPU101
    return curve, worst
