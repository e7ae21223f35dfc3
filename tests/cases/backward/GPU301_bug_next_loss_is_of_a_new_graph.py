"""The backward that comes later goes through a loss of its own: the graph that is kept is for nobody."""

import torch


def train(model, loader, optimizer, criterion, again, pieces):
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        fast = None
        losses = torch.zeros(len(pieces))
        for k, piece in enumerate(pieces):
            fast = model.update_weight(images[piece], labels[piece], fast, criterion)
            losses[k] = model.meta_loss(images, labels, fast)
        loss = torch.mean(losses)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # low: GPU301
        optimizer.step()
        if again:
            loss = model.meta_loss(images, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
