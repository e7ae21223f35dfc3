"""Pictures are read and moved to the GPU, all of them, and then looked at one by one; or made one tensor of, or gone through
again in each epoch."""

import os

import cv2
import torch
import torchvision.transforms.functional as tf
from PIL import Image


def read(made_dir, true_dir):
    made, true, names = [], [], []
    for name in os.listdir(made_dir):
        picture = Image.open(made_dir / name)
        other = Image.open(true_dir / name)
        made.append(tf.to_tensor(picture).unsqueeze(0)[:, :3].cuda())  # low: GPU102
        true.append(tf.to_tensor(other).unsqueeze(0)[:, :3].cuda())  # low: GPU102
        names.append(name)
    return made, true, names


def compare(folders, likeness):
    for folder in folders:
        made, true, names = read(folder / "made", folder / "true")
        likenesses = []
        for k in range(len(made)):
            likenesses.append(likeness(made[k], true[k]).item())
        print(dict(zip(names, likenesses, strict=True)))


def one_by_one(paths, likeness, wanted, device):
    pictures = []
    for path in paths:
        pictures.append(torch.from_numpy(cv2.imread(path)).float().to(device))  # low: GPU102
    scores = []
    for picture in pictures:
        scores.append(likeness(picture, wanted).item())
    return scores


def again(paths, network, optimizer, epochs):
    pictures = []
    for path in paths:
        pictures.append(tf.to_tensor(Image.open(path)).cuda())  # low: GPU102
    for _ in range(epochs):
        for picture in pictures:
            loss = network(picture).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
