import torch


def fit(net, optimizer, epochs, train, score, path):
    best = 0.0
    net.to("cuda")
    for epoch in range(epochs):
        train(net)
        current = score(net)
        if current > best:
            best = current
            checkpoint = {"epoch": epoch, "net": net.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(checkpoint, path)
    checkpoint = torch.load(path, map_location="cpu")
    net.load_state_dict(checkpoint["net"])


def fit_each(nets, tasks, train, score, path):
    best = 0.0
    for task in tasks:
        if task.resumes:
            state = torch.load(task.path, map_location="cpu")
            nets[task].load_state_dict(state["net"])
        nets[task].to("cuda")
        train(nets[task])
        current = score(nets[task])
        if current > best:
            best = current
            state = {"net": nets[task].state_dict(), "score": best}
            torch.save(state, path)
