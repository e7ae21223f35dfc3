"""Decorators and contexts of libraries that know nothing of grad, and a network of a class named for its task."""

import lmdb
import streamlit as st
import torch
from transformers import AutoTokenizer, BertForMaskedLM


@st.cache_resource
def guesses(sentences, device):
    words = AutoTokenizer.from_pretrained("bert-base-uncased")
    network = BertForMaskedLM.from_pretrained("bert-base-uncased").to(device)
    found = []
    for sentence in sentences:
        inputs = words(sentence, return_tensors="pt").to(device)
        scores = network(**inputs).logits  # expect: GPU201
        found.append(torch.topk(scores, 5).indices.tolist())
    return found


def index(network, loader, path):
    network.cuda().eval()
    with lmdb.open(path) as table:
        for key, picture in loader:
            vector = network(picture.cuda())  # expect: GPU201
            table.put(key, vector.detach().cpu().numpy().tobytes())
