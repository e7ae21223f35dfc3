"""Tensors that are gathered: on which device they are, how large, whether they are moved, joined, read or thrown away."""

import collections
import json
import pickle

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch import nn
from torchvision import models
from tqdm import tqdm

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = models.resnet50()
        self.saved = []
        self.dummy = nn.Parameter(torch.zeros(1))

    @property
    def device(self):
        return self.dummy.device

    def forward(self, x):
        return self.body(x.to(self.device))


@torch.no_grad()
def logits_of_all(loader, output_device=None):
    model = Net().to(DEVICE).eval()
    logits, labels, hosted, ids, columns, arrays, tops = [], [], [], [], [], [], []
    rows = torch.zeros(0, 1000, device=DEVICE)
    by_name, nested, queue = {}, collections.defaultdict(list), collections.deque()
    for number, (x, y, names) in enumerate(tqdm(loader)):
        out = model(x)
        logits.append(out)  # maybe: GPU102
        labels.append(y)
        hosted.append(out.to("cpu", non_blocking=True))
        hosted += [out.cpu()[:, :10], out.detach().to(torch.device("cpu"))]
        ids.extend(out.argmax(-1).tolist())
        columns.append(out.softmax(-1)[:, 1])
        tops.append(out.max(1)[0])
        arrays.append(np.asarray(out.cpu()))
        rows = torch.cat([rows, out], dim=0)  # maybe: GPU102
        for name, row in zip(names, out):
            by_name[name] = row  # maybe: GPU102, GPU106
            nested[name].append(row.half())  # maybe: GPU102
            nested["sum"].append(row.sum().item())  # note: GPU504
        queue.append(out.float())  # maybe: GPU102
        if len(queue) > 4:
            queue.popleft()
        if output_device is not None:
            nested["placed"].append(out.to(output_device))  # maybe: GPU102
        if number == 3:
            break
    print(len(logits), logits[0].shape, roc_auc_score(torch.cat(labels).numpy(), torch.cat(columns).cpu().numpy()))
    frame = pd.DataFrame({"id": ids, "top": torch.cat(tops).cpu().numpy()})
    json.dump({name: row.tolist() for name, row in by_name.items()}, open("rows.json", "w"))
    pickle.dump([value.cpu() for value in nested["placed"]], open("placed.pkl", "wb"))
    joined = torch.cat(logits, dim=0)
    return joined.cpu(), frame, np.concatenate(arrays), torch.cat(hosted), rows.cpu(), list(queue)


@torch.no_grad()
def tokens(model, prompt, steps, tokenizer):
    past, generated, scores, hiddens = None, [], [], []
    current = prompt.to(DEVICE)
    for _ in range(steps):
        out = model(current, past_key_values=past, output_hidden_states=True)
        past = out.past_key_values
        current = out.logits[:, -1].argmax(-1, keepdim=True)
        generated.append(current)
        scores.append(out.logits[:, -1])  # expect: GPU102
        hiddens.append(out.hidden_states[-1])  # maybe: GPU102
        if current.item() == tokenizer.eos_token_id:
            break
    text = tokenizer.decode(torch.cat(generated, dim=1)[0])
    return text, torch.stack(scores, 1), hiddens


@torch.no_grad()
def tiles(model, picture, size=256):
    pieces, parts, rows = [], [], []
    for chunk in picture.split(8):
        pieces.append(model(chunk.to(DEVICE)))
    for top in range(0, picture.shape[-2], size):
        row = []
        for left in range(0, picture.shape[-1], size):
            row.append(model(picture[..., top : top + size, left : left + size].cuda()))
        rows.append(torch.cat(row, -1))
    for part in torch.chunk(picture, 4):
        parts += (model(part.cuda()),)
    return torch.cat(pieces), torch.cat(parts), torch.cat(rows, -2)


class Bank:
    def __init__(self, model, device):
        self.model = model.to(device)
        self.device = device
        self.features, self.labels, self.names = [], [], []
        self.table = {}
        self.slots = [None] * 100
        self.size = 0

    def fill(self, loader):
        self.model.eval()
        with torch.no_grad():
            for number, (x, y) in enumerate(loader):
                feature = F.normalize(self.model(x.to(self.device)), dim=1)
                self.features.append(feature)  # maybe: GPU102
                self.labels.append(y.to(self.device))
                self.slots[number % 100] = feature
                self.table[number] = feature.mean(0).cpu()
                self.size += feature.shape[0]
        self.features = torch.cat(self.features).t().contiguous()
        return self.features, torch.cat(self.labels)

    def gathered(self, loader):
        every = []
        for x, _ in loader:
            with torch.inference_mode():
                mine = self.model(x.to(self.device))
            theirs = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
            dist.all_gather(theirs, mine)
            every.extend(theirs)  # maybe: GPU102
        return torch.cat(every)

    def nearest(self, loader, k=5):
        found = []
        bank, labels = self.fill(loader)
        for x, _ in loader:
            with torch.no_grad():
                distance = self.model(x.to(self.device)) @ bank
            values, index = distance.topk(k)
            found.append(labels[index])  # maybe: GPU102
            del distance
        return torch.stack(found[:-1]).cpu().numpy()


def outputs(model, loader):
    for x in loader:
        with torch.no_grad():
            yield model(x.cuda())


def consumer(model, loader):
    every = list(outputs(model.cuda(), loader))  # expect: GPU102
    means = [out.mean().item() for out in outputs(model, loader)]
    sums = sum(out.sum() for out in outputs(model, loader))
    kept = torch.cat([out for out in outputs(model, loader)])  # maybe: GPU102
    maps = list(map(lambda x: model(x.cuda()).detach(), loader))  # maybe: GPU102, GPU201
    return every, means, sums, kept, maps


def members(nets, loader):
    answers = {}
    for x in loader:
        outs = [net(x.cuda()).detach() for net in nets]
        votes = {}
        for number, net in enumerate(nets):
            votes[number] = net(x.cuda()).argmax(1)  # low: GPU505
        answers[len(answers)] = torch.stack(outs).mean(0).cpu()
        print(torch.stack(list(votes.values())).float().mean().item())
    return answers


def losses(model, loader, optimizer):
    per_sample, scalars, weights, norms, ids = [], [], [], [], []
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda(), reduction="none")
        loss.mean().backward()
        optimizer.step()
        per_sample.append(loss.detach())  # maybe: GPU102
        scalars.append(loss.detach().mean())
        weights.append(model.fc.weight.detach().clone())  # maybe: GPU102
        norms.append(torch.stack([p.grad.norm() for p in model.parameters()]))
        ids.append(y)
    return torch.cat(per_sample), torch.stack(scalars).mean(), weights[-1], norms, ids


def main(loader, tokenizer):
    net = Net()
    network = nn.DataParallel(net).to(DEVICE)
    print(logits_of_all(loader)[1], tokens(network, torch.zeros(1), 10, tokenizer)[0], tiles(network, torch.zeros(9))[0])
    bank = Bank(net, DEVICE)
    bank.nearest(loader)
    bank.gathered(loader)
    consumer(net, loader)
    members([net, network], loader)
    losses(net.body, loader, torch.optim.SGD(net.parameters(), lr=0.1))
