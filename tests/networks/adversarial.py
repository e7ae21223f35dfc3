import copy

from options import parse
from settings import *
from torch import nn

opt = parse()


class Generator(nn.Module):
    """A function within the constructor, and the command line of another file."""

    def __init__(self):
        super().__init__()

        def block(inside, outside, normalize=True):
            made = [nn.Linear(inside, outside)]
            if normalize:
                made.append(nn.BatchNorm1d(outside))
            return made

        self.model = nn.Sequential(
            *block(100, 128, normalize=False),
            *block(128, 256),
            nn.Linear(256, opt.channels * opt.img_size**2),
        )


class Discriminator(nn.Module):
    def __init__(self, args=opt):
        super().__init__()
        self.body = Discriminator.stage(args.channels, args.hidden_size)
        self.side = self.stage(args.hidden_size, widths[2])
        size = args.img_size // 2**2
        self.head = nn.Linear(widths[2] * size * size, 1)

    @staticmethod
    def stage(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 4, 2, 1), nn.LeakyReLU(0.2))


class Either(nn.Module):
    """What is made hangs on an argument."""

    KINDS = {"gru": nn.GRU, "lstm": nn.LSTM}

    def __init__(self, kind="lstm", dropout=0.0, bidirectional=True):
        super().__init__()
        self.rnn = self.KINDS[kind](64, 128, 2, bidirectional=bidirectional)
        self.drop = nn.Dropout(dropout) if dropout > 0.0 else nn.Identity()
        self.out = getattr(nn, "Linear")(256 if bidirectional else 128, layers)


class Stacked(nn.Module):
    """The same layer again and again."""

    def __init__(self, width=256, depth=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 1024)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.extra = nn.ModuleList([copy.deepcopy(layer) for _ in range(2)])


class Halving(nn.Module):
    """A loop that goes on until a width is reached."""

    def __init__(self, size=64, stop=4):
        super().__init__()
        width, layers = 16, []
        while size > stop:
            layers.append(nn.Conv2d(width, width * 2, 4, 2, 1))
            width, size = width * 2, size // 2
        self.layers = nn.Sequential(*layers)
