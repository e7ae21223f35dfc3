"""The blend looks like a running average; each round makes what it blends anew."""

import torch
import torch.nn.functional as F


def train(edges_of, fill, loader, opt):
    for image, edges, masks in loader:
        image, edges, masks = image.cuda(), edges.cuda(), masks.cuda()
        outputs = edges_of(image)
        outputs = outputs * masks + edges * (1 - masks)
        opt.zero_grad()
        loss = F.l1_loss(fill(image, outputs.detach()), image)
        loss.backward()
        opt.step()
        print(loss.item())
