import torch


class Reader:
    def __init__(self, model, device="cuda"):
        self.model, self.device = model.to(device), torch.device(device)

    @torch.no_grad()
    def read(self, ids):
        try:
            logits = self.model(ids.to(self.device))
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            if "memory" not in str(error).lower():
                raise
            self.device = torch.device("cpu")
            self.model.to(self.device)
            logits = self.model(ids.to(self.device))
        return logits.argmax(-1).tolist()


def decode(run, images, failures, drop_tracebacks):
    try:
        return run(images)
    except torch.cuda.OutOfMemoryError as error:
        drop_tracebacks(error)
        failures.append(error)
        return None
