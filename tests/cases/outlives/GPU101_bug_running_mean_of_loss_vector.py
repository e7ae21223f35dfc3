import torch
import torch.nn.functional as F


class ComputeLoss:
    def __init__(self, hyp):
        self.hyp = hyp

    def __call__(self, pred, targets):
        box = self.hyp["box"] * F.smooth_l1_loss(pred[0], targets[0])
        obj = self.hyp["obj"] * F.binary_cross_entropy_with_logits(pred[1], targets[1])
        cls = self.hyp["cls"] * F.cross_entropy(pred[2], targets[2])
        return box + obj + cls, torch.stack((box, obj, cls))


def train(model, loader, opt, hyp, device):
    compute_loss = ComputeLoss(hyp)
    mloss = torch.zeros(3, device=device)
    for i, (imgs, targets) in enumerate(loader):
        pred = model(imgs.to(device))
        loss, loss_items = compute_loss(pred, [t.to(device) for t in targets])
        loss.backward()
        opt.step()
        opt.zero_grad()
        mloss = (mloss * i + loss_items) / (i + 1)  # expect: GPU101
    return mloss.tolist()
