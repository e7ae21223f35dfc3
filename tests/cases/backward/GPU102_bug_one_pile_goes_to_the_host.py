"""Whether grad is on, the callers say. Of two piles the one is moved to the host, the other stays on the device."""
import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self, text_encoder, video_encoder):
        super().__init__()
        self.text_encoder, self.video_encoder = text_encoder, video_encoder
        self.device = torch.device("cuda")

    def similarities(self, loader):
        words, frames = [], []
        for batch in loader:
            text = self.text_encoder.embed(batch["text"].to(self.device))
            words.append(text)  # low: GPU102
            video = self.video_encoder.embed(batch["video"].to(self.device))
            frames.append(video.cpu())
        words = torch.cat(words)
        return words @ torch.cat(frames).to(self.device).t()

    def contrast(self, loader):
        words, frames = [], []
        for batch in loader:
            words.append(self.text_encoder.embed(batch["text"].to(self.device)))
            frames.append(self.video_encoder.embed(batch["video"].to(self.device)))
        return (torch.cat(words) - torch.cat(frames)).pow(2).mean()
