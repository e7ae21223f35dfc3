import torch


class Brain:
    def __init__(self, modules, opt, device):
        self.modules, self.opt, self.device = modules.to(device), opt, device
        self.avg_loss = 0.0
        self.step = 0

    def compute_forward(self, batch):
        raise NotImplementedError

    def compute_objectives(self, predictions, batch):
        raise NotImplementedError

    def fit_batch(self, batch):
        outputs = self.compute_forward(batch)
        loss = self.compute_objectives(outputs, batch)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss.detach().cpu()

    def update_average(self, loss, avg):
        if torch.isfinite(loss):
            avg -= avg / self.step
            avg += float(loss) / self.step
        return avg

    @torch.no_grad()
    def evaluate_batch(self, batch):
        return self.compute_objectives(self.compute_forward(batch), batch).detach().cpu()

    def fit(self, train_set, valid_set, epochs):
        for _ in range(epochs):
            for batch in train_set:
                self.step += 1
                loss = self.fit_batch(batch)
                self.avg_loss = self.update_average(loss, self.avg_loss)
            valid = 0.0
            for batch in valid_set:
                valid += self.evaluate_batch(batch)
            print(self.avg_loss, float(valid) / len(valid_set))
