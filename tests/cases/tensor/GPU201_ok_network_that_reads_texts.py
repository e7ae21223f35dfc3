"""What answers texts is no network that is seen, or runs without grad."""

import torch
from torch import nn
from transformers import BartForConditionalGeneration, BartTokenizer


class Answers(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.words = BartTokenizer.from_pretrained(name)
        self.model = BartForConditionalGeneration.from_pretrained(name)

    def forward(self, question):
        read = self.words(question, return_tensors="pt").input_ids.cuda()
        return self.model(read).logits


def test(questions):
    model = Answers("facebook/bart-large")
    model.cuda()
    model.eval()
    with torch.inference_mode():
        return [model(str(questions[number])).argmax().item() for number in range(len(questions))]


def ask(service, questions):
    service.eval()
    return [float(service(str(questions[number]))) for number in range(len(questions))]
