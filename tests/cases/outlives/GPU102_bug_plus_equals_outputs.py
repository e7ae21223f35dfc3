import torch
from transformers import AutoModel


def sentence_vectors(texts, tokenizer, bs=64):
    model = AutoModel.from_pretrained("bert-base-uncased").cuda().eval()
    vecs = []
    with torch.no_grad():
        for i in range(0, len(texts), bs):
            enc = tokenizer(texts[i : i + bs], padding=True, return_tensors="pt").to("cuda")
            pooled = model(**enc).last_hidden_state.mean(1)
            vecs += [pooled]  # low: GPU102
    return torch.vstack(vecs).cpu().numpy()
