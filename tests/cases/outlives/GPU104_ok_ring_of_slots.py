from torch import nn


class Pool(nn.Module):
    """Keeps what is being copied until the copy is done."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.turn = -1
        self.pending = [None] * size

    def push(self, values):
        self.turn = (self.turn + 1) % self.size
        self.wait(self.turn)
        self.pending[self.turn] = values

    def wait(self, slot):
        self.pending[slot] = None


class Recent:
    def __init__(self, size):
        self.size = size
        self.rows = {}

    def log(self, step, value):
        self.rows[step % self.size] = value


def train(net, loader, opt):
    pool, recent = Pool(4), Recent(8)
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        pool.push(loss)
        recent.log(i, loss)
    return pool, recent
