"""The end of a network's file looks at one picture, and another file imports the network: the program never gets there."""
# file: networks/__init__.py
from .parsing import ParsingNet
# file: networks/parsing.py
import numpy as np
import torch
from torch import nn
from torch.autograd import Variable


class ParsingNet(nn.Module):
    def __init__(self, classes, depth, width):
        super().__init__()
        self.body = nn.Sequential(*(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth)))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        return self.head(self.body(x))

    def by_windows(self, picture, corners):
        found = np.zeros(picture.shape)
        for top, left in corners:
            window = Variable(picture[:, :, top : top + 512, left : left + 512], volatile=True)  # low: GPU204
            found[:, :, top, left] += self.forward(window.cuda()).data.cpu().numpy().argmax(1)
        return found


def labels_of(net, picture):
    net.eval()
    return net(picture).argmax(1).cpu()  # low: GPU201


if __name__ == "__main__":
    from imageio import imread, imwrite

    net = ParsingNet(19, 12, 256).cuda()
    net.load_state_dict(torch.load("parsing.pt"))  # maybe: GPU403
    net.eval()
    picture = torch.from_numpy(imread("street.png")).float().permute(2, 0, 1).unsqueeze(0)
    imwrite("windows.png", net.by_windows(picture, [(0, 0), (0, 512)])[0])
    imwrite("labels.png", labels_of(net, picture.cuda()).numpy()[0])
    imwrite("again.png", net(picture.cuda()).argmax(1).cpu().numpy()[0])
# file: run.py
import torch
from networks import ParsingNet


def main(loader, classes):
    net = ParsingNet(classes, 8, 128).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for pictures, labels in loader:
        loss = torch.nn.functional.cross_entropy(net(pictures.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(*map(__import__, ()))
