import torch


@torch.no_grad()
def report(net, loader, names):
    net.eval().cuda()
    rows = []
    for x, files in loader:
        p, top = net(x.cuda()).softmax(1).max(1)
        for f, score, k in zip(files, p.tolist(), top.tolist()):
            rows.append((f, names[k], score))
    return rows
