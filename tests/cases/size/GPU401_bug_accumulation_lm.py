import torch
from torch import nn


class LM(nn.Module):
    def __init__(self, vocab_size=32000, d=768):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, d)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 12, batch_first=True), 12)
        self.lm_head = nn.Linear(d, vocab_size, bias=False)

    def forward(self, idx):
        return self.lm_head(self.body(self.wte(idx)))


def train(get_batch, iters, accum=16):
    lm = LM().cuda()
    opt = torch.optim.AdamW(lm.parameters(), lr=6e-4, betas=(0.9, 0.95))
    ce = nn.CrossEntropyLoss()
    for it in range(iters):
        for micro in range(accum):
            xb, yb = get_batch("train")
            scores = lm(xb.cuda())
            l = ce(scores.transpose(1, 2), yb.cuda()) / accum  # expect: GPU401
            l.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
