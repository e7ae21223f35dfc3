"""Each client fits a logistic regression on the CPU: its batch is made there and goes nowhere."""
import torch


class Client:
    def __init__(self, model, stream, rate):
        self.model = model
        self.stream = stream
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
        self.criterion = torch.nn.BCELoss()
        self.losses = []

    def step(self, i):
        self.optimizer.zero_grad()
        x = torch.from_numpy(self.stream[i]["x"]).float()
        y = torch.FloatTensor([self.stream[i]["y"]])
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss)

    def regret(self):
        return self.losses
