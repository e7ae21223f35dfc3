import torch
from torch import nn
from torch.amp import GradScaler


def fit(net, dl, epochs, lr):
    net.cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=lr)
    scaler = GradScaler("cuda")
    for ep in range(epochs):
        for x, y in dl:
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = nn.functional.l1_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            scaler.scale(loss).backward(retain_graph=True)  # expect: GPU301
            scaler.step(opt)
            scaler.update()
