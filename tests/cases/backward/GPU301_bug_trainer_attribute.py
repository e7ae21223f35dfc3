import torch


class Pix2Pix:
    def __init__(self, netG, netD, lam=100.0):
        self.netG, self.netD, self.lam = netG.cuda(), netD.cuda(), lam
        self.optG = torch.optim.Adam(netG.parameters(), 2e-4, (0.5, 0.999))
        self.optD = torch.optim.Adam(netD.parameters(), 2e-4, (0.5, 0.999))
        self.gan = torch.nn.BCEWithLogitsLoss()

    def forward(self, a):
        self.a = a.cuda()
        self.fake = self.netG(self.a)

    def backward_D(self, b):
        pf = self.netD(torch.cat([self.a, self.fake.detach()], 1))
        pr = self.netD(torch.cat([self.a, b], 1))
        self.loss_D = 0.5 * (self.gan(pf, torch.zeros_like(pf)) + self.gan(pr, torch.ones_like(pr)))
        self.loss_D.backward()

    def backward_G(self, b):
        p = self.netD(torch.cat([self.a, self.fake], 1))  # low: GPU202
        self.loss_G = self.gan(p, torch.ones_like(p)) + self.lam * (self.fake - b).abs().mean()
        self.loss_G.backward(retain_graph=True)  # expect: GPU301

    def optimize(self, a, b):
        b = b.cuda()
        self.forward(a)
        self.optD.zero_grad()
        self.backward_D(b)
        self.optD.step()
        self.optG.zero_grad()
        self.backward_G(b)
        self.optG.step()
