import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class GAN(pl.LightningModule):
    def __init__(self, G, D, nz):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D, self.nz = G, D, nz

    def training_step(self, batch):
        real, _ = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(len(real), self.nz, device=self.device)

        with torch.no_grad():
            fake = self.G(z)
        d_loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(fake)).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()

        g_loss = F.softplus(-self.D(self.G(z))).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        self.log_dict({"g": g_loss, "d": d_loss}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.G.parameters()), torch.optim.Adam(self.D.parameters())
