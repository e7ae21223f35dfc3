import torch


def adjust(trainer, factor):
    trainer.batch_size = int(trainer.batch_size * factor)
    return trainer.batch_size


def reset(trainer):
    trainer.loader = None


def largest(trainer, attempt, trials=8):
    size = trainer.batch_size
    for _ in range(trials):
        try:
            attempt(trainer)
            trial(trainer)
            size = adjust(trainer, 2.0)
            reset(trainer)
        except torch.cuda.OutOfMemoryError:
            size = adjust(trainer, 0.5)
            reset(trainer)
            break
    return size


def trial(trainer):
    for batch in trainer.batches:
        trainer.step(batch)
