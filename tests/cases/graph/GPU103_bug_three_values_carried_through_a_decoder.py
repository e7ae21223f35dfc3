"""A decoder carries three values from step to step and keeps its frames, with grad on: cutting one of them cuts nothing."""

import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.prenet = nn.Linear(80, width)
        self.cell = nn.LSTMCell(2 * width, width)
        self.query = nn.Linear(width, width)
        self.out = nn.Linear(2 * width, 80)

    def speak(self, text, steps=2000):
        self.eval()
        hidden = text.new_zeros(text.size(0), 512)
        memory, context = hidden.clone(), hidden.clone()
        frame = text.new_zeros(text.size(0), 80)
        frames = []
        for _ in range(steps):
            x = torch.cat([self.prenet(frame).relu(), context], 1)  # expect: GPU201|GPU103@d
            hidden, memory = self.cell(x, (hidden, memory))  # expect: GPU201|GPU103@d
            weights = torch.einsum("bw,btw->bt", self.query(hidden), text).softmax(-1)  # maybe: GPU201, GPU103
            context = torch.einsum("bt,btw->bw", weights, text)  # maybe: GPU103
            frame = self.out(torch.cat([hidden, context], 1))  # expect: GPU201|GPU103@d
            frames.append(frame)  # note: GPU101
        return torch.stack(frames, 1).detach().cpu().numpy()


def main(texts, encoder: nn.Module):
    speaker = Speaker().cuda()
    for name, ids in texts:
        with torch.no_grad():
            states = encoder.cuda()(ids.cuda())  # low: GPU505
        speaker.speak(states).tofile(f"{name}.raw")
