"""TensorFlow only takes the numbers; the loss is torch's."""
import tensorflow as tf
import torch
from torch import nn


def train(model, loader, optimizer, folder):
    criterion = nn.CrossEntropyLoss()
    writer = tf.summary.create_file_writer(folder)
    total = 0
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss  # expect: GPU101
        with writer.as_default():
            tf.summary.scalar("loss", loss.item(), step)
    return total
