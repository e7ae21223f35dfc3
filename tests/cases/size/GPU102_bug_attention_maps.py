import torch
from transformers import BertModel


def attention_maps(loader, name="bert-large-uncased"):
    bert = BertModel.from_pretrained(name, output_attentions=True).to("cuda")
    bert.eval()
    maps = {}
    step = 0
    with torch.no_grad():
        for enc in loader:
            out = bert(**{k: v.to("cuda") for k, v in enc.items()})
            maps[step] = out.attentions[-1]  # low: GPU102
            step += 1
    return maps
