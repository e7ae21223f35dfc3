"""One forward for both phases, of which one goes backward: also where the whole of it stands under a test for training."""

from torch.nn.functional import cross_entropy


def one_epoch(model, loader, optimizer, train):
    if train:
        model.train()
    else:
        model.eval()
    total = 0
    for x, y in loader:
        loss = cross_entropy(model(x.cuda()), y.cuda())  # expect: GPU201
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def run(args, model, loaders, optimizer):
    if args.train:
        for phase in ("train", "valid"):
            if phase == "train":
                model.train()
            else:
                model.eval()
            total = 0
            for x, y in loaders[phase]:
                loss = cross_entropy(model(x.cuda()), y.cuda())  # expect: GPU201
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item()
            print(phase, total)
