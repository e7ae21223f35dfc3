import torch
from torch import nn


def run_stream(model: nn.GRU, proj, chunks, opt, device):
    hidden = None
    for audio, labels in chunks:
        audio = audio.to(device)
        feats, hidden = model(audio, hidden)  # expect: GPU103
        ctc = nn.functional.nll_loss(proj(feats).log_softmax(-1).flatten(0, 1), labels.to(device).flatten())
        opt.zero_grad()
        ctc.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
        hidden.detach()
