# Of what a method of the same class gives, only the scores are brought back to the host; the maps stay on the device.
import torch


class Regression:
    def __init__(self, net, device):
        self.net = net.to(device)
        self.device = device

    def _predict(self, batch):
        self.net.eval()
        with torch.no_grad():
            found = [part(batch.to(self.device)) for part in self.net.heads]
        maps = torch.cat([one.maps for one in found])
        scores = torch.cat([one.scores for one in found])
        return maps, scores.cpu()

    def predict(self, loader):
        all_maps, all_scores = [], []
        for (batch,) in loader:
            maps, scores = self._predict(batch)
            all_maps.append(maps)  # low: GPU102
            all_scores.append(scores)
        return torch.cat(all_maps, 1).cpu().numpy(), torch.cat(all_scores, 1).numpy()
