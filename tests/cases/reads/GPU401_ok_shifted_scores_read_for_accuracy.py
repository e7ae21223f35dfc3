"""The scores are read once more behind the backward."""


class Recipe:
    def epoch(self, loader):
        for step, batch in enumerate(loader):
            labels = batch["labels"][:, 1:].to(self._device)
            scores = self._model(batch["tokens"].to(self._device))
            scores = scores[:, :-1].contiguous()
            loss = self._loss_fn(scores.transpose(1, 2), labels)
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            print(step, (scores.argmax(-1) == labels).float().mean().item())
