from transformers import AutoModelForSequenceClassification


def epoch(network, phases, log):
    for phase in phases:
        metric = getattr(network, f"{phase}_accuracy")
        log(phase, metric.compute())
        metric.reset()
