import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--img-size", type=int, default=64)
    parser.add_argument("--hidden", dest="hidden_size", type=int, default=192)
    return parser.parse_args([])
