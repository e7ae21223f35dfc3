"""Generators and discriminators, critics and targets, teachers and meta-learners: who trains with whose graph."""

import copy
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import autograd
from torch.optim import Adam
from torchvision import models


class Generator(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(100, width), nn.ReLU(), nn.Linear(width, 784))

    def forward(self, z, both=False):
        out = self.net(z)
        return (out, out.mean()) if both else out


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))

    def forward(self, x):
        features = []
        for layer in self.net:
            x = layer(x)
            features.append(x)
        return features


def gan(loader, epochs=10):
    G, D = Generator().cuda(), Discriminator().cuda()
    opt_g, opt_d = Adam(G.parameters(), lr=2e-4), Adam(D.parameters(), lr=2e-4)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for real, _ in loader:
            real = real.view(-1, 784).cuda()
            fake = G(torch.randn(real.size(0), 100, device="cuda"))
            real_loss = criterion(D(real)[-1], torch.ones(real.size(0), 1, device="cuda"))
            fake_loss = criterion(D(fake)[-1], torch.zeros(real.size(0), 1, device="cuda"))  # expect: GPU203
            d_loss = real_loss + fake_loss
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            fake = G(torch.randn(real.size(0), 100, device="cuda"))
            g_loss = criterion(D(fake)[-1], torch.ones(real.size(0), 1, device="cuda"))
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()


def gan_with_one_sample(loader, G, D, opt_g, opt_d):
    for real, _ in loader:
        z = torch.randn(64, 100).cuda()
        fake, extra = G(z, both=True)
        d_loss = F.softplus(D(fake)[-1]).mean() + F.softplus(-D(real.cuda())[-1]).mean()  # expect: GPU203
        opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        opt_d.step()
        g_loss = F.softplus(-D(fake)[-1]).mean() + extra
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()


def wgan(loader, G, D, opt_g, opt_d, critics=5):
    for real, _ in loader:
        for _ in range(critics):
            fake = G(torch.randn(64, 100).cuda()).detach()
            penalty = gradient_penalty(D, real.cuda(), fake)  # low: GPU505
            (D(fake)[-1].mean() - D(real.cuda())[-1].mean() + 10 * penalty).backward()  # low: GPU505
            opt_d.step()
            D.zero_grad()
        score = D(G(torch.randn(64, 100).cuda()))[-1]
        (-score.mean()).backward()
        opt_g.step()
        G.zero_grad()


def gradient_penalty(D, real, fake):
    alpha = torch.rand(real.size(0), 1, device=real.device)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = D(mixed)[-1]
    grads = autograd.grad(out, mixed, torch.ones_like(out), create_graph=True, retain_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


class Cycle:
    def __init__(self, opt):
        self.G_A, self.G_B = Generator().cuda(), Generator().cuda()
        self.D_A, self.D_B = Discriminator().cuda(), Discriminator().cuda()
        self.opt_G = Adam(itertools.chain(self.G_A.parameters(), self.G_B.parameters()))
        self.opt_D = Adam(list(self.D_A.parameters()) + list(self.D_B.parameters()))
        self.pool = []
        self.loss_names = ["D_A", "G"]

    def set_requires_grad(self, nets, requires_grad=False):
        if not isinstance(nets, list):
            nets = [nets]
        for net in nets:
            if net is not None:
                for param in net.parameters():
                    param.requires_grad = requires_grad

    def forward(self):
        self.fake_B = self.G_A(self.real_A)
        self.fake_A = self.G_B(self.real_B)

    def backward_D_basic(self, netD, real, fake):
        pred_real, pred_fake = netD(real)[-1], netD(fake.detach())[-1]
        loss = (pred_real - 1).pow(2).mean() + pred_fake.pow(2).mean()
        loss.backward()
        return loss

    def backward_D(self):
        self.loss_D_A = self.backward_D_basic(self.D_A, self.real_B, self.fake_B)
        self.loss_D_B = self.backward_D_basic(self.D_B, self.real_A, self.query(self.fake_A))

    def query(self, images):
        self.pool.append(images.detach())
        if len(self.pool) > 50:
            self.pool.pop(0)
        return self.pool[-1]

    def backward_G(self):
        self.loss_G = self.D_A(self.fake_B)[-1].mean() + F.l1_loss(self.G_B(self.fake_B), self.real_A)
        self.loss_G.backward()

    def optimize_parameters(self, real_A, real_B):
        self.real_A, self.real_B = real_A.cuda(), real_B.cuda()
        self.forward()
        self.set_requires_grad([self.D_A, self.D_B], False)
        self.opt_G.zero_grad()
        self.backward_G()
        self.opt_G.step()
        self.set_requires_grad([self.D_A, self.D_B], True)
        self.opt_D.zero_grad()
        self.backward_D()
        self.opt_D.step()

    def current_losses(self):
        return {name: float(getattr(self, "loss_" + name)) for name in self.loss_names}


class Ddpg:
    def __init__(self, actor, critic, gamma=0.99, tau=0.005):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.target_actor, self.target_critic = copy.deepcopy(actor), copy.deepcopy(critic)
        self.actor_opt, self.critic_opt = Adam(self.actor.parameters()), Adam(self.critic.parameters())
        self.gamma, self.tau = gamma, tau

    def update(self, buffer):
        for _ in range(100):
            s, a, r, s2, d = (part.cuda() for part in buffer.sample(256))
            with torch.no_grad():
                next_a = self.target_actor(s2)
            target_q = self.target_critic(torch.cat([s2, next_a], 1))  # maybe: GPU202
            target = r + self.gamma * (1 - d) * target_q
            current = self.critic(torch.cat([s, a], 1))
            critic_loss = F.mse_loss(current, target.detach())
            self.critic_opt.zero_grad()
            critic_loss.backward()
            self.critic_opt.step()
            actor_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
            self.actor_opt.zero_grad()
            actor_loss.backward()
            self.actor_opt.step()
            for p, t in zip(self.critic.parameters(), self.target_critic.parameters()):
                t.data.copy_(self.tau * p.data + (1 - self.tau) * t.data)

    def act(self, state):
        state = torch.as_tensor(state, dtype=torch.float32).unsqueeze(0).cuda()
        return self.actor(state).cpu().data.numpy().flatten()  # note: GPU201


def distill(student, loader, temperature=4.0):
    teacher = models.resnet152(pretrained=True).cuda().eval()
    ema = copy.deepcopy(student).cuda()
    for p in ema.parameters():
        p.detach_()
    optimizer = Adam(student.parameters())
    for x, y in loader:
        soft = teacher(x.cuda())  # expect: GPU202
        mean = ema(x.cuda())
        hard = student(x.cuda())
        loss = F.kl_div(F.log_softmax(hard / temperature, 1), F.softmax(soft / temperature, 1)) + F.mse_loss(hard, mean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def maml(model, tasks, inner_lr=0.01, first_order=False):
    outer = Adam(model.parameters())
    for support, query in tasks:
        fast = dict(model.named_parameters())
        for _ in range(5):
            loss = torch.func.functional_call(model, fast, (support[0].cuda(),)).pow(2).mean()
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=not first_order)
            fast = {name: p - inner_lr * g for (name, p), g in zip(fast.items(), grads)}
        torch.func.functional_call(model, fast, (query[0].cuda(),)).pow(2).mean().backward()
        outer.step()
        outer.zero_grad()


def second_order(model, loader, optimizer):
    trace = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward(create_graph=True)  # maybe: GPU302
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        probe = [torch.randn_like(g) for g in grads]
        products = torch.autograd.grad(sum((g * v).sum() for g, v in zip(grads, probe)), model.parameters())
        trace += sum((h * v).sum().item() for h, v in zip(products, probe))  # low: GPU504
        for p in model.parameters():
            p.grad = None
        optimizer.step()
    return trace


def deferred(model, loader, optimizer):
    total = 0
    for number, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) / 4
        total = total + loss  # note: GPU303
        if (number + 1) % 4 == 0:
            optimizer.zero_grad(set_to_none=False)  # maybe: GPU304
            total.backward()
            optimizer.step()
            total = 0


def adversarial(model, loader, optimizer, steps=7, alpha=2 / 255):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(steps):
            F.cross_entropy(model(x + delta), y).backward()
            delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-8 / 255, 8 / 255)
            delta.grad.zero_()
        moved = (x + delta).detach()
        adv = torch.autograd.Variable(moved, requires_grad=True)
        grad, = torch.autograd.grad(F.cross_entropy(model(adv), y), [adv])
        perturbed = adv.data + alpha * torch.sign(grad)
        optimizer.zero_grad()
        F.cross_entropy(model(perturbed), y).backward()
        optimizer.step()


def main(loader, env):
    gan(loader)
    G, D = Generator().cuda(), Discriminator().cuda()
    gan_with_one_sample(loader, G, D, Adam(G.parameters()), Adam(D.parameters()))
    wgan(loader, G, D, Adam(G.parameters()), Adam(D.parameters()))
    cycle = Cycle(None)
    for a, b in zip(loader, loader):
        cycle.optimize_parameters(a, b)
        print(cycle.current_losses())
    agent = Ddpg(Generator(), Discriminator())
    agent.update(env)
    print(agent.act([0.0]))
    distill(models.resnet18(), loader)
    maml(G, loader)
    second_order(D, loader, Adam(D.parameters()))
    deferred(G, loader, Adam(G.parameters()))
    adversarial(G, loader, Adam(G.parameters()))
