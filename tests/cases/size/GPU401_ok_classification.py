import torch
import torch.nn.functional as F
from torchvision.models import resnet18


def train(loader, epochs):
    net = resnet18(num_classes=10).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in loader:
            out = net(x.cuda())
            loss = F.cross_entropy(out, y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
