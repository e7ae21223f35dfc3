from transformers import AutoModelForSequenceClassification


def load(name):
    network = AutoModelForSequenceClassification.from_pretrained(name).cuda()
    network.eval()
    print(f"{network.num_parameters():,} weights, {network.count_layers()} layers")
    return network


def epoch(network, phases, log):
    for phase in phases:
        metric = getattr(network, f"{phase}_accuracy")
        log(phase, metric.compute())
        metric.reset()
