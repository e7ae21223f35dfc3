"""A function that trains, and validates in a second loop of its own: no backward goes through what that loop sums."""
import torch


def fit(net, train_batches, held_out, criterion, optimizer, epochs):
    best = float("inf")
    for epoch in range(epochs):
        for inputs, targets in train_batches:
            inputs, targets = inputs.cuda(), targets.cuda()
            optimizer.zero_grad()
            loss = criterion(net(inputs), targets)
            loss.backward()
            optimizer.step()
        validation = 0.0
        for inputs, targets in held_out:
            loss = criterion(net(inputs.cuda()), targets.cuda())  # expect: GPU201
            validation += loss  # expect: GPU101
        validation = validation.item() / len(held_out)
        if validation < best:
            best = validation
            torch.save(net.state_dict(), "best.pt")
    return best
