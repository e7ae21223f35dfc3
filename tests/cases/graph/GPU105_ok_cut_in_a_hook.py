"""The same hook cuts before it moves."""


class Probe:
    def __init__(self, backbone):
        self.handle = backbone.layer3.register_forward_hook(self.look)
        self.features = None

    def look(self, layer, given, out):
        self.features = out.detach().float().cpu()

    def describe(self):
        return self.features.mean((2, 3)).tolist()
