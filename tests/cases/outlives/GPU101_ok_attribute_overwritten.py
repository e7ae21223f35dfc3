import torch
from torch import nn


class Model:
    def __init__(self, opt):
        self.device = torch.device("cuda:%d" % opt.gpu)
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 3, 3, 1, 1)).to(self.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=opt.lr)
        self.criterion = nn.L1Loss()

    def set_input(self, batch):
        self.real_A = batch["A"].to(self.device)
        self.real_B = batch["B"].to(self.device)

    def forward(self):
        self.fake_B = self.net(self.real_A)

    def optimize_parameters(self):
        self.forward()
        self.optimizer.zero_grad()
        self.loss_G = self.criterion(self.fake_B, self.real_B) * 100
        self.loss_G.backward()
        self.optimizer.step()

    def get_current_losses(self):
        return {"G": float(self.loss_G)}


def train(opt, dataset):
    model = Model(opt)
    for epoch in range(opt.n_epochs):
        for data in dataset:
            model.set_input(data)
            model.optimize_parameters()
        print(epoch, model.get_current_losses())
