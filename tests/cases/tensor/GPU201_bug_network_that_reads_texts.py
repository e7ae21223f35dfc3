"""A network makes tensors of the texts that it is given: it runs, and saves, as any other."""

import torch
from torch import nn
from transformers import BartForConditionalGeneration, BartTokenizer


class Answers(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.words = BartTokenizer.from_pretrained(name)
        self.model = BartForConditionalGeneration.from_pretrained(name)

    def forward(self, question, answer="nothing"):
        read = self.words(question, return_tensors="pt").input_ids.cuda()
        wanted = self.words(answer, return_tensors="pt").input_ids.cuda()
        return self.model(read, labels=wanted).loss


def test(questions):
    model = Answers("facebook/bart-large")
    model.cuda()
    model.eval()
    total = 0.0
    for number in range(len(questions)):
        total += model(str(questions[number]), answer="yes").item()  # expect: GPU201
    return total


def train(questions, epochs):
    model = Answers("facebook/bart-large")
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def validate():
        model.eval()
        total = 0.0
        for number in range(len(questions)):
            total += model(str(questions[number]), answer="yes").item()  # expect: GPU201
        return total

    for _ in range(epochs):
        model.train()
        for number in range(len(questions)):
            loss = model(str(questions[number]), answer="no")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(validate())
