import torch
import torch.nn.functional as F
from torchvision.models import vgg19


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b * c, h * w)
    return f @ f.t() / (b * c * h * w)


def features(net, x, layers):
    out = []
    for i, layer in enumerate(net):
        x = layer(x)
        if i in layers:
            out.append(x)
    return out


def transfer(content, style, steps=300, device="cuda"):
    net = vgg19(weights="DEFAULT").features.to(device).eval().requires_grad_(False)
    content, style = content.to(device), style.to(device)
    layers = (0, 5, 10, 19, 28)
    with torch.no_grad():
        targets = [gram(f) for f in features(net, style, layers)]
        want = features(net, content, (21,))[0]
    img = content.clone().requires_grad_(True)
    opt = torch.optim.Adam([img], lr=0.02)
    for i in range(steps):
        style_loss = 0.0
        for f, g in zip(features(net, img, layers), targets):
            style_loss += F.mse_loss(gram(f), g)
        content_loss = F.mse_loss(features(net, img, (21,))[0], want)
        loss = content_loss + 1e5 * style_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    return img.detach().cpu()
