import argparse

import torch
import torch.nn.functional as F
from torchvision.models import resnet18


def step(net, opt, batch):
    img, target = batch
    img = img.cuda(non_blocking=True)
    target = target.cuda(non_blocking=True)
    out = net(img)
    loss = F.cross_entropy(out, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()

    net = resnet18(num_classes=100).cuda()
    opt = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    loader = make_loader()
    for ep in range(args.epochs):
        losses = []
        for batch in loader:
            losses.append(step(net, opt, batch))  # expect: GPU101
        print(ep, (sum(losses) / len(losses)).item())


def make_loader():
    from torchvision.datasets import FakeData
    from torchvision.transforms import ToTensor

    return torch.utils.data.DataLoader(FakeData(transform=ToTensor()), 32)


if __name__ == "__main__":
    main()
