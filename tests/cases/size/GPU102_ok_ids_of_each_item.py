"""What is piled up are a few ids of each item: lists are made of them, or they are read as whole numbers."""

import torch


@torch.no_grad()
def tag(net, loader, names):
    net.cuda().eval()
    tags = []
    for words, _ in loader:
        words = words.cuda()
        mask = words.ne(0)
        best = net.decode(net(words), mask)
        tags.extend(best[mask].split(mask.sum(1).tolist()))
    return [[names[number] for number in row.tolist()] for row in tags]


@torch.no_grad()
def transcribe(net, loader, alphabet):
    net.cuda().eval()
    found = []
    for sound in loader:
        found.append(net(sound.cuda()))
    texts = []
    for batch in found:
        for row in batch.long().cpu():
            texts.append("".join(alphabet[number] for number in row))
    return texts
