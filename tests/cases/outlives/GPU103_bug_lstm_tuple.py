import torch
from torch import nn


class WordLM(nn.Module):
    def __init__(self, n_tok, d=400, n_layers=3):
        super().__init__()
        self.enc = nn.Embedding(n_tok, d)
        self.lstm = nn.LSTM(d, d, n_layers, dropout=0.3)
        self.dec = nn.Linear(d, n_tok)

    def forward(self, ids, hc):
        o, hc = self.lstm(self.enc(ids), hc)
        return self.dec(o), hc

    def zero_state(self, bsz, dev):
        return torch.zeros(3, bsz, 400, device=dev), torch.zeros(3, bsz, 400, device=dev)


def train(corpus, n_tok, device, bptt=70):
    lm = WordLM(n_tok).to(device)
    opt = torch.optim.SGD(lm.parameters(), lr=20.0)
    state = lm.zero_state(20, device)
    for i in range(0, corpus.size(0) - bptt, bptt):
        x, y = corpus[i : i + bptt].to(device), corpus[i + 1 : i + 1 + bptt].to(device)
        out, state = lm(x, state)  # expect: GPU103
        loss = nn.functional.cross_entropy(out.view(-1, n_tok), y.reshape(-1))  # maybe: GPU401
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        nn.utils.clip_grad_norm_(lm.parameters(), 0.25)
        opt.step()
