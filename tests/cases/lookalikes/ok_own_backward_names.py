import torch


class Command:
    def __init__(self, do, undo):
        self.forward, self.backward = do, undo
