"""A server that switches grad off for the process where it loads its networks: what its other methods make has no graph."""

import torch


class Service:
    def initialize(self, args):
        self.device = "cuda" if args["kind"] == "GPU" else "cpu"
        self.load(args["path"])

    def load(self, path):
        torch.set_grad_enabled(False)
        self.speech = torch.jit.load(path, map_location=self.device)
        self.speech.eval()

    def chunks(self, wave, size=1536):
        self.speech.reset_states()
        found = []
        for start in range(0, len(wave), size):
            found.append(self.speech(wave[start : start + size], 16_000))
        return found

    def execute(self, requests):
        found = []
        for wave in requests:
            found.append(self.chunks(wave.to(self.device)))  # maybe: GPU102
        return found


class Settled:
    """Its constructor does it, by a method of its own."""

    def __init__(self, net, loader):
        self._only_inference()
        self.net = net.cuda().eval()
        self.loader = loader

    def _only_inference(self):
        torch.set_grad_enabled(False)

    def run(self):
        total = 0.0
        kept = []
        for x, y in self.loader:
            out = self.net(x.cuda())
            total += torch.nn.functional.cross_entropy(out, y.cuda())
            kept.append(out.argmax(1).cpu())
        return total.item(), kept


class Below(Settled):
    def again(self):
        total = 0.0
        for x, y in self.loader:
            total += torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda())
        return total.item()
