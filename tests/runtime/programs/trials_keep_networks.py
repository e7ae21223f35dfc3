# Each trial leaves its network and its optimizer, whose states are those of ever more optimizers.
# holder: list `trials` in `main()`
# line: trials.append(trial())
# window: call of `trial()`
# bytes: 108544
from setting import train_some, training


def trial():
    model, optimizer = training()
    train_some(model, optimizer, 4)
    return model, optimizer


def main():
    trials = []
    for _ in range(100):
        trials.append(trial())


main()
