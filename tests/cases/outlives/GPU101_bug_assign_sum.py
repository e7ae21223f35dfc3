import torch
import torch.nn.functional as F


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce, kld


def train(epoch, model, train_loader, optimizer, device):
    model.train()
    train_loss = 0
    kl_sum = 0
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        bce, kld = loss_function(recon_batch, data, mu, logvar)
        loss = bce + kld
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        kl_sum = kl_sum + kld  # expect: GPU101
    print("epoch {} loss {:.3f} kl {:.3f}".format(epoch, train_loss / len(train_loader), kl_sum / len(train_loader)))
