import torch
import torch.nn.functional as F


class CGAN:
    def __init__(self, netG, netD):
        self.netG, self.netD = netG.cuda(), netD.cuda()
        self.optG = torch.optim.Adam(netG.parameters(), 1e-4)
        self.optD = torch.optim.Adam(netD.parameters(), 1e-4)

    def update_d(self, x, c):
        self.fake = self.netG(torch.randn(len(x), 64, device="cuda"), c)
        d = F.softplus(-self.netD(x, c)).mean()
        d = d + F.softplus(self.netD(self.fake, c)).mean()  # expect: GPU203
        self.optD.zero_grad()
        d.backward()
        self.optD.step()
        return d.item()

    def update_g(self, x, c):
        fake = self.netG(torch.randn(len(x), 64, device="cuda"), c)
        g = F.softplus(-self.netD(fake, c)).mean()
        self.optG.zero_grad()
        g.backward()
        self.optG.step()
        return g.item()
