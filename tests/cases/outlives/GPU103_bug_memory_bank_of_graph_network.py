import torch
from torch import nn


class TemporalGraph(nn.Module):
    def __init__(self, n_nodes, d):
        super().__init__()
        self.gru = nn.GRUCell(2 * d, d)
        self.score = nn.Linear(2 * d, 1)
        self.n_nodes, self.d = n_nodes, d

    def forward(self, memory, src, dst):
        msg = torch.cat([memory[src], memory[dst]], -1)
        memory = memory.index_copy(0, src, self.gru(msg, memory[src]))
        return self.score(msg).squeeze(-1), memory


def train(net, events, device):
    net.to(device)
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    memory = torch.zeros(net.n_nodes, net.d, device=device)
    for src, dst, y in events:
        logit, memory = net(memory, src.to(device), dst.to(device))  # expect: GPU103
        loss = nn.functional.binary_cross_entropy_with_logits(logit, y.to(device))
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
