"""The batch is made of arrays, and moved: what is held stands on the GPU."""
import torch


class Client:
    def __init__(self, model, stream, rate, device):
        self.model = model.to(device)
        self.stream = stream
        self.device = device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
        self.criterion = torch.nn.BCELoss()
        self.losses = []

    def step(self, i):
        self.optimizer.zero_grad()
        x = torch.from_numpy(self.stream[i]["x"]).float().to(self.device)
        y = torch.FloatTensor([self.stream[i]["y"]]).to(self.device)
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss)  # expect: GPU101
