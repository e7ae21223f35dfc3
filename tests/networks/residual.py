from parts import blocks
from parts.blocks import Basic, Bottleneck, conv3x3
from torch import nn
from torch.nn.utils import spectral_norm


class Residual(nn.Module):
    """Stages of blocks, made by a method of its own."""

    def __init__(self, block=Basic, layers=(2, 2, 2, 2), classes=1000):
        super().__init__()
        self.inside = 64
        self.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.layer1 = self._stage(block, 64, layers[0])
        self.layer2 = self._stage(block, 128, layers[1], stride=2)
        self.layer3 = self._stage(block, 256, layers[2], stride=2)
        self.layer4 = self._stage(block, 512, layers[3], stride=2)
        self.fc = nn.Linear(512 * block.expansion, classes)

    def _stage(self, block, planes, count, stride=1):
        down = None
        if stride != 1 or self.inside != planes * block.expansion:
            down = nn.Sequential(nn.Conv2d(self.inside, planes * block.expansion, 1, stride, bias=False))
        stage = [block(self.inside, planes, stride)]
        self.inside = planes * block.expansion
        for _ in range(1, count):
            stage.append(block(self.inside, planes))
        if down is not None:
            stage.append(down)
        return nn.Sequential(*stage)


class Deep(Residual):
    def __init__(self, **given):
        super().__init__(Bottleneck, [3, 4, 6, 3], **given)


class Inverted(nn.Module):
    """A table of settings, a lambda for the norm, widths that are rounded."""

    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2)]

    def __init__(self, scale=1.4, classes=100):
        super().__init__()
        norm = lambda width: nn.BatchNorm2d(width)  # noqa: E731
        inside = int(32 * scale)
        features = [blocks.ConvNorm(3, inside, stride=2), norm(inside)]
        for expand, width, count, stride in self.table:
            outside = int(width * scale)
            for position in range(count):
                hidden = round(inside * expand)
                features += [
                    blocks.ConvNorm(inside, hidden, 1),
                    blocks.ConvNorm(hidden, hidden, 3, stride if position == 0 else 1, groups=hidden),
                    nn.Conv2d(hidden, outside, 1, bias=False),
                ]
                inside = outside
        self.features = nn.Sequential(*features)
        self.classifier = nn.Linear(inside, classes)


class Dense(nn.Module):
    """Blocks whose width grows, by add_module."""

    def __init__(self, growth=32, counts=(6, 12), width=64):
        super().__init__()
        self.features = nn.Sequential()
        for number, count in enumerate(counts):
            for layer in range(count):
                inside = width + layer * growth
                part = nn.Sequential(
                    nn.Conv2d(inside, 4 * growth, 1), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3)
                )
                self.features.add_module("block%d_%d" % (number, layer), part)
            width += count * growth
            if number != len(counts) - 1:
                self.features.add_module(f"down{number}", nn.Conv2d(width, width // 2, 1))
                width = width // 2
        self.head = nn.Linear(width, 10)


class Normed(nn.Module):
    """Layers with something put around them, and a class kept in a variable."""

    def __init__(self, inside=16, width=48):
        super().__init__()
        wrap = spectral_norm
        self.first = wrap(nn.Conv2d(inside, width, 3))
        self.second = spectral_norm(conv3x3(width, width))
        self.third = nn.utils.weight_norm(nn.Linear(width, 7))

    def forward(self, x):
        return self.third(self.second(self.first(x)))
