"""The method is handed to a window, whose loop runs without grad: a doubt that another file raises."""
# file: src/showing.py
import torch


class Showing:
    def __init__(self, data, model: torch.nn.Module):
        self.data, self.model = data, model

    def update(self, *position):
        image = self.data[position[0] if position else 0]
        scores = self.model(image.unsqueeze(0).cuda())  # low: GPU201
        self.shown = torch.argmax(scores.squeeze(), dim=0).detach().cpu()
# file: show.py
import cv2
import torch

from src.showing import Showing


def main(data, model):
    model = model.cuda().eval()
    showing = Showing(data, model)
    cv2.createTrackbar("image", "window", 0, len(data) - 1, showing.update)
    with torch.no_grad():
        showing.update()
        cv2.waitKey()
# file: once.py
import torch

from src.showing import Showing


def main(data, model):
    showing = Showing(data, torch.compile(model).cuda().eval())
    showing.update(3)
