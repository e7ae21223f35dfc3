"""A language model's scores at all positions, of which one is read for each sequence, or none."""

import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM


@torch.no_grad()
def rerank(loader, yes: int):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    scores = []
    for batch in loader:
        scores += model(**batch).logits[:, -1, yes].tolist()  # expect: GPU409
    return scores


def at_the_end_of_each(logits, mask):
    if mask[:, -1].all():
        return logits[:, -1]
    lengths = mask.sum(1) - 1
    return logits[torch.arange(logits.shape[0], device=logits.device), lengths]


@torch.no_grad()
def rerank_by_lengths(loader, yes: int):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    scores = []
    for batch in loader:
        scores += at_the_end_of_each(model(**batch).logits, batch["attention_mask"])[:, yes].tolist()  # expect: GPU409
    return scores


def train(loader, yes: int, optimizer):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    for batch, wanted in loader:
        score = model(**batch).logits[:, -1, yes]  # expect: GPU409
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def embed(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for batch in loader:
        states = model(**batch, output_hidden_states=True).hidden_states  # expect: GPU409
        yield (states[-1] + states[-2])[:, -1].cpu()
        del states


def train_a_head(model, head, loader, optimizer):
    for ids, targets in loader:
        out = model(input_ids=ids, labels=ids, output_hidden_states=True)  # expect: GPU409
        loss = torch.nn.functional.cross_entropy(head(out.decoder_hidden_states[-1][:, 0]), targets)  # maybe: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def rerank_by_a_model_that_is_given(model, loader, yes: int):
    for batch in loader:
        yield model(**batch).logits[:, -1, yes].cpu()  # low: GPU409


if __name__ == "__main__":
    from elsewhere import head, loader, optimizer

    network = AutoModelForSeq2SeqLM.from_pretrained("t5-base").cuda()
    train_a_head(network, head, loader, optimizer)
    train(loader, 7, optimizer)
    print(len(list(embed(loader))), rerank(loader, 7), rerank_by_lengths(loader, 7))
