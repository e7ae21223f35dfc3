import torch
from torch import nn, optim


class World(nn.Module):
    def __init__(self, obs, act, hid):
        super().__init__()
        self.cell = nn.GRUCell(obs + act, hid)
        self.pred = nn.Linear(hid, obs)

    def forward(self, o, a, b):
        b = self.cell(torch.cat([o, a], -1), b)
        return self.pred(b), b


def online(world: World, env_stream, device="cuda"):
    world.to(device)
    opt = optim.Adam(world.parameters(), 6e-4)
    belief = torch.zeros(1, world.cell.hidden_size, device=device)
    for o, a, o_next in env_stream:
        pred, belief = world(o.to(device), a.to(device), belief)  # expect: GPU103
        err = (pred - o_next.to(device)).pow(2).mean()
        opt.zero_grad()
        err.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
        belief = belief.clone()
