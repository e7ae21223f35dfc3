import torch
import torch.nn.functional as F


def project(G, target, lpips, num_steps=500, device="cuda"):
    """Finds the latent of an image; G and lpips are fixed networks."""
    G = G.eval().requires_grad_(False).to(device)
    target = target.to(device)
    with torch.no_grad():
        w_avg = G.mapping(torch.randn(1000, 512, device=device)).mean(0, keepdim=True)
        feat = lpips(target)
    w = w_avg.clone().requires_grad_(True)
    opt = torch.optim.Adam([w], lr=0.1)
    for step in range(num_steps):
        img = G.synthesis(w)
        dist = (feat - lpips(img)).square().sum() + F.l1_loss(img, target)
        opt.zero_grad(set_to_none=True)
        dist.backward()
        opt.step()
    return w.detach().cpu()
