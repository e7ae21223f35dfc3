"""Embeddings of texts and of recordings, handed to the caller with the graph of all the weights behind them."""

import fairseq
import soundfile
import torch
from transformers import AutoModel, AutoTokenizer


class TextVectors:
    def __init__(self, name, device):
        self.device = device
        self.words = AutoTokenizer.from_pretrained(name)
        self.network = AutoModel.from_pretrained(name).to(device)

    def of(self, sentences):
        batch = self.words(sentences, padding=True, truncation=True, return_tensors="pt").to(self.device)
        states = self.network(**batch)  # expect: GPU201
        return states.last_hidden_state[:, 0]


class SpeechVectors:
    def __init__(self, checkpoint, layer):
        networks, _, _ = fairseq.checkpoint_utils.load_model_ensemble_and_task([checkpoint])
        self.network = networks[0].cuda().eval()
        self.layer = layer

    def of(self, path):
        samples, _ = soundfile.read(path)
        samples = torch.from_numpy(samples).float().cuda().unsqueeze(0)
        states, _ = self.network.extract_features(samples, mask=False, output_layer=self.layer)  # expect: GPU201
        return states.squeeze(0)
