layers = 3
widths = [32, 64, 128]


class Settings:
    heads = 4
    width = 96

    def __init__(self, depth=2):
        self.depth = depth
        self.inner = self.width * 4
