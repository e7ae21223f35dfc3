"""Features of many files, samples, texts and frames, one a round, for a file on the disk."""

import glob

import cv2
import numpy as np
import torch
from PIL import Image


def of_paths(model: torch.nn.Module, paths, transform):
    kept = []
    for path in paths:
        image = transform(Image.open(path).convert("RGB")).unsqueeze(0).cuda()
        with torch.no_grad():
            kept.append(model(image))  # low: GPU102
    return torch.cat(kept).cpu()


@torch.no_grad()
def of_folder(model: torch.nn.Module, folder):
    kept = []
    for name in sorted(glob.glob(folder + "/*.npy")):
        kept.append(model(read(name)))  # low: GPU102
    np.save("features.npy", torch.stack(kept).cpu().numpy())


def read(name):
    return torch.from_numpy(np.load(name)).cuda()[None]


@torch.no_grad()
def of_samples(model: torch.nn.Module, dataset):
    kept = []
    for i in range(len(dataset)):
        sample, _ = dataset[i]
        kept.append(model(sample.unsqueeze(0).cuda()))  # low: GPU102
    return torch.cat(kept).cpu()


@torch.no_grad()
def of_sentences(model: torch.nn.Module, tokenizer, sentences):
    kept = []
    for sentence in sentences:
        inputs = tokenizer(sentence, return_tensors="pt").to("cuda")
        kept.append(model(**inputs).last_hidden_state[:, 0])  # low: GPU102
    return torch.cat(kept).cpu().numpy()


@torch.no_grad()
def of_frames(model: torch.nn.Module, filename, transform):
    video = cv2.VideoCapture(filename)
    kept = []
    while True:
        found, frame = video.read()
        if not found:
            break
        kept.append(model(transform(frame).cuda()))  # low: GPU102
    return torch.stack(kept).cpu()
