import torch
import torch.nn as nn
from torch.autograd import Variable


def train(model, train_loader, optimizer, epoch):
    model.train()
    total_loss = 0
    hist = []
    criterion = nn.NLLLoss()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = Variable(data.cuda()), Variable(target.cuda())
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        total_loss += loss.data
        hist.append(loss.data[0])
        if batch_idx % 10 == 0:
            print("Train Epoch: {} Loss: {:.6f}".format(epoch, loss.data[0]))
    return total_loss / len(train_loader), hist
