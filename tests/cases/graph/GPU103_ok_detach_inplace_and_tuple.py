import torch
from torch import nn


def train(lstm, fc, seqs, opt):
    h, c = torch.zeros(1, 8, 64).cuda(), torch.zeros(1, 8, 64).cuda()
    for x, y in seqs:
        out, (h, c) = lstm(x.cuda(), (h, c))
        loss = nn.functional.mse_loss(fc(out), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        h.detach_()
        c.detach_()


def train_again(lstm, fc, seqs, opt):
    hc = (torch.zeros(1, 8, 64).cuda(), torch.zeros(1, 8, 64).cuda())
    for x, y in seqs:
        hc = (hc[0].detach(), hc[1].detach())
        out, hc = lstm(x.cuda(), hc)
        loss = nn.functional.mse_loss(fc(out), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
