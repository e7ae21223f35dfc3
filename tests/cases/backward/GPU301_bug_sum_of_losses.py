import torch
from torch.nn import functional as F


def train_joint(model, loader, opt, w_cls=1.0, w_box=5.0):
    model.train().cuda()
    for imgs, cls, box in loader:
        p_cls, p_box = model(imgs.cuda())
        l_cls = F.cross_entropy(p_cls, cls.cuda())
        l_box = F.smooth_l1_loss(p_box, box.cuda())
        err = w_cls * l_cls + w_box * l_box
        opt.zero_grad()
        err.backward(retain_graph=True)  # expect: GPU301
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
        print("cls %.3f box %.3f" % (l_cls.item(), l_box.item()))
