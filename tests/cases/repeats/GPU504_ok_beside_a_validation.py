"""Figures are read one by one beside a validation, which costs more, in whatever `with` and `if`."""

import torch

net = torch.nn.Linear(8, 10).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader, held_out, names, say_all):
    for index, inputs in enumerate(loader):
        loss = net(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 500 == 0:
            with torch.no_grad():
                scores = [net(other.cuda()).mean(0) for other in held_out]
                if say_all:
                    means = torch.stack(scores).mean(0)
                    for place, name in enumerate(names):
                        print(name, means[place].item())
