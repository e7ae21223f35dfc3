"""Pictures that are moved in turn, made one tensor of, or kept on the host."""

import os

import cv2
import torch
import torchvision.transforms.functional as tf
from PIL import Image


def in_turn(paths, likeness, wanted):
    scores = []
    for path in paths:
        picture = tf.to_tensor(Image.open(path)).cuda()
        scores.append(likeness(picture, wanted).item())
    return scores


def joined(paths, network):
    pictures = []
    for path in paths:
        pictures.append(tf.to_tensor(Image.open(path)).cuda())
    return network(torch.stack(pictures))


def on_the_host(paths, likeness, wanted):
    pictures = []
    for path in paths:
        pictures.append(tf.to_tensor(Image.open(path)))
    return [likeness(picture.cuda(), wanted).item() for picture in pictures]
