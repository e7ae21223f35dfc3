"""Viewers: each round waits until a window is closed, or draws at once what a small network has found."""

import cv2
import matplotlib.pyplot as plt
import open3d
import torch
from torch import nn


class Landmarks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 1024, 3, 2), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(1024, 136)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def show_clouds(source, target):
    clouds = [open3d.geometry.PointCloud(), open3d.geometry.PointCloud()]
    clouds[0].points, clouds[1].points = source, target
    open3d.visualization.draw_geometries(clouds)


def register(model, loader):
    model.eval()
    error = 0
    for source, target in loader:
        moved = model(source.cuda())  # low: GPU201
        show_clouds(moved.detach().cpu().numpy()[0], target.numpy()[0])
        error += (moved - target.cuda()).abs().mean().item()
    return error / len(loader)


def look(model, data):
    model.eval()
    loader = torch.utils.data.DataLoader(data, batch_size=1)
    for pictures, _ in loader:
        maps = model(pictures.cuda())  # low: GPU201
        plt.imshow(maps[0].argmax(0).detach().cpu())
        plt.show()


def step_by_step(model, data):
    model.eval()
    for pictures, _ in torch.utils.data.DataLoader(data, 1):
        maps = model(pictures.cuda())  # low: GPU201
        cv2.imshow("maps", maps[0].argmax(0).detach().cpu().numpy())
        cv2.waitKey(0)


def camera(find_faces):
    net = Landmarks().cuda()
    net.load_state_dict(torch.load("landmarks.pt", map_location="cpu"))
    net.eval()
    camera = cv2.VideoCapture(0)
    while True:
        ok, frame = camera.read()
        if not ok:
            break
        for box in find_faces(frame):
            face = torch.from_numpy(box).float().cuda().unsqueeze(0)
            for x, y in net(face).detach().cpu().numpy().reshape(-1, 2):  # low: GPU201
                cv2.circle(frame, (int(x), int(y)), 1, (0, 0, 255))
        cv2.imshow("landmarks", frame)
        if cv2.waitKey(1) == 27:
            break


def main(data):
    register(torch.load("net.pt").cuda(), torch.utils.data.DataLoader(data, batch_size=1, shuffle=True))
