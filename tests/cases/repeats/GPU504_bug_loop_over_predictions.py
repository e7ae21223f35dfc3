import torch


@torch.no_grad()
def report(net, loader, names):
    net.eval().cuda()
    rows = []
    for x, files in loader:
        p = net(x.cuda()).softmax(1)
        top = p.argmax(1)
        for j, f in enumerate(files):
            rows.append((f, names[top[j].item()], p[j].max().cpu()))  # note: GPU504
    return rows
