"""Scores for the next token, whose loss is the recipe's own, stay bound through the backward."""


class Recipe:
    def epoch(self, loader):
        for step, batch in enumerate(loader):
            scores = self._model(batch["tokens"].to(self._device))
            scores = scores[:, :-1].contiguous().transpose(1, 2)
            loss = self._loss_fn(scores, batch["labels"][:, 1:].to(self._device)) / self._every  # low: GPU401
            loss.backward()
            if (step + 1) % self._every == 0:
                self._optimizer.step()
                self._optimizer.zero_grad(set_to_none=True)
