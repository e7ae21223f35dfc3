import torch


class Trainer:
    def __init__(self, model, train_loss, optim, trunc_size=0):
        self.model, self.train_loss, self.optim, self.trunc_size = model, train_loss, optim, trunc_size

    def _gradient_accumulation(self, batches, stats):
        for batch in batches:
            tgt_outer = batch["tgt"]
            trunc = self.trunc_size or tgt_outer.size(1)
            bptt = False
            for j in range(0, tgt_outer.size(1) - 1, trunc):
                tgt = tgt_outer[:, j : j + trunc]
                self.optim.zero_grad()
                outputs, attns = self.model(batch["src"], tgt, batch["src_len"], bptt=bptt)
                bptt = True
                loss, batch_stats = self.train_loss(outputs, tgt)
                self.optim.backward(loss)
                stats.update(batch_stats)
                self.optim.step()
                if self.model.decoder.state is not None:
                    self.model.decoder.detach_state()
