layers = 3
widths = [32, 64, 128]
