"""What a handler tries again asks nothing of the GPU: emptying the cache there helps nobody, and hurts little."""
import torch


class Head:
    def assigned(self, boxes, truth, mode="gpu"):
        if mode == "cpu":
            boxes, truth = boxes.cpu(), truth.cpu()
        return torch.cdist(boxes, truth).argmin(-1)

    def targets(self, boxes, truths):
        found = []
        for truth in truths:
            try:
                found.append(self.assigned(boxes, truth))
            except RuntimeError:
                torch.cuda.empty_cache()  # low: GPU402
                found.append(self.assigned(boxes, truth, "cpu"))
        return found

    def halved(self, boxes, truths):
        found = []
        for truth in truths:
            try:
                found.append(self.assigned(boxes, truth))
            except RuntimeError:
                torch.cuda.empty_cache()  # expect: GPU402
                found.append(self.assigned(boxes[: len(boxes) // 2], truth))
        return found
