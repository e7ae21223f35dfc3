import torch
from torch import nn
from torch.autograd import Variable


def train_char_rnn(net, get_batches, epochs, n_seqs, n_steps, lr=0.001, clip=5):
    net.train()
    net.cuda()
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    for e in range(epochs):
        h = net.init_hidden(n_seqs)
        for x, y in get_batches(n_seqs, n_steps):
            inputs, targets = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
            h = tuple([Variable(each.data) for each in h])
            net.zero_grad()
            output, h = net(inputs, h)
            loss = criterion(output, targets.view(n_seqs * n_steps))
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), clip)
            opt.step()
