import torch
import torch.nn.functional as F


def inner_loop(net, x, y, lr, steps):
    fast = {k: p for k, p in net.named_parameters()}
    for _ in range(steps):
        out = torch.func.functional_call(net, fast, (x,))
        loss = F.cross_entropy(out, y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {k: p - lr * g for (k, p), g in zip(fast.items(), grads)}
    return fast


def meta_train(net, task_loader, meta_lr=1e-3, inner_lr=0.4, steps=5):
    opt = torch.optim.Adam(net.parameters(), lr=meta_lr)
    for tasks in task_loader:
        outer_loss = torch.tensor(0.0, device="cuda")
        for xs, ys, xq, yq in tasks:
            fast = inner_loop(net, xs.cuda(), ys.cuda(), inner_lr, steps)
            out = torch.func.functional_call(net, fast, (xq.cuda(),))
            outer_loss += F.cross_entropy(out, yq.cuda())  # maybe: GPU303
        opt.zero_grad()
        outer_loss.backward()
        opt.step()
        print(outer_loss.item())
