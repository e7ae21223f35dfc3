"""As many rounds as the displays have items; `hidden_states[-2]` picks from a tuple."""

import torch


class Prompts:
    def __init__(self, first, second, tokenizers):
        self.first, self.second = first, second
        self.tokenizers = tokenizers

    @torch.no_grad()
    def embed(self, text, other=None):
        encoders = [self.first, self.second]
        texts = [text, other or text]
        parts = []
        for words, text_model, tokenizer in zip(texts, encoders, self.tokenizers):
            ids = tokenizer(words, return_tensors="pt").input_ids
            out = text_model(ids.to("cuda"), output_hidden_states=True)
            hidden = out.hidden_states[-2]
            parts.append(hidden)
        return torch.cat(parts, -1).cpu()
