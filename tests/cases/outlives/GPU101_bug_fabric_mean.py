import lightning as L
import torch
import torch.nn.functional as F


def main(make_model, dataset):
    fabric = L.Fabric(accelerator="cuda", devices=2, strategy="ddp")
    fabric.launch()
    model = make_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    model, opt = fabric.setup(model, opt)
    loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(dataset, 64, shuffle=True))
    epoch_loss = None
    for x, y in loader:
        nll = F.nll_loss(F.log_softmax(model(x), -1), y)
        opt.zero_grad()
        fabric.backward(nll)
        opt.step()
        epoch_loss = nll if epoch_loss is None else epoch_loss + nll  # expect: GPU101
    fabric.print(epoch_loss / len(loader))
