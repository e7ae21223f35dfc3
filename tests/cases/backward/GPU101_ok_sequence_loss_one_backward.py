import torch
import torch.nn as nn


def train_seq2seq(encoder, decoder, pairs, enc_opt, dec_opt, sos, device):
    criterion = nn.NLLLoss()
    print_total = 0
    for src, tgt in pairs:
        src, tgt = src.to(device), tgt.to(device)
        enc_opt.zero_grad()
        dec_opt.zero_grad()
        enc_out, hidden = encoder(src)
        inp = torch.full((1, src.size(1)), sos, device=device)
        loss = 0
        for di in range(tgt.size(0)):
            out, hidden = decoder(inp, hidden, enc_out)
            loss += criterion(out, tgt[di])
            inp = tgt[di].unsqueeze(0)
        loss.backward()
        enc_opt.step()
        dec_opt.step()
        print_total += loss.item() / tgt.size(0)
    return print_total / len(pairs)
