"""The words by which keepers, statistics and what has no graph are known. A word is evidence, never proof."""

from __future__ import annotations

import re
from typing import Final

# What a function that makes numbers, arrays or tensors without a graph of what it is given is called.
CUTS: Final = re.compile(
    r"(?i)(?:^|_)(?:item|items|detach\w*|numpy|np|asnumpy|tolist|float|int|scalar|value_of|no_grad|stop_gradient|host|print|"
    r"format|str|json|accuracy|acc|f1|auc|psnr|ssim|bleu|wer|cer|iou|time|len|count|num|lr|get_last_lr|get_lr)(?:_|$)|"
    r"^(?:get_numpy|to_np|to_numpy|tensor2np|tensor2im|to_py\w*|to_cpu_numpy|reduce_dict|reduce_loss_dict|reduce_mean_loss)$"
)

# Parameters that say what a batch brings or how many there are: nothing that a network has made.
BROUGHT: Final = re.compile(
    r"(?i)(?:^|_)(?:n|k|num|count|counts|batch|batch_size|bs|size|weight|weights|target|targets|label|labels|gt|truth|"
    r"y|y_true|true|ids?|idx|index|indices|mask|masks|length|lengths|len|name|names|key|keys|path|paths|step|steps|epoch|"
    r"iter|iteration|lr|time|text|texts|word|words|token|tokens|actions?|rewards?|dones?|terminals?|obs|observations?|states?|"
    r"infos?|inputs?|images?|samples?|data|meta|metas|config|cfg|args|kwargs|options|seed|device|dtype|reference|references|"
    r"bbox|bboxes|boxes|annotations?|timestep|timesteps|t|i|j|value_format|line|row|record|item|file|url)\d*$"
)

# Of these, what may also be made by a network, where it is said to be a tensor.
SHOWN: Final = re.compile(r"(?i)(?:^|_)(?:images?|samples?|img|states?|actions?|words?|weights?|x|y)\d*$")

# What a module that normalizes raw data is given, by its name.
DATA: Final = re.compile(
    r"(?i)(?:^|_)(?:obs|observations?|states?|actions?|rewards?|data|images?|pixels|targets?|labels?|masks?|lengths?)\d*$"
)

# Objects that hold settings as attributes, by the last names of their classes.
NAMESPACES: Final = frozenset("SimpleNamespace Namespace EasyDict Munch edict ConfigDict".split())

# Methods that put something more into what they are called on.
PUTTING: Final = frozenset("append extend insert appendleft add update setdefault".split())

# What settings are read from.
SETTINGS: Final = re.compile(
    r"(?i)(?:^|[._])(?:config|cfg|conf|args|opts?|hparams|hp|params|options|settings|flags|hyper_params)\."
)

# Names of dicts that are for figures.
FIGURES: Final = re.compile(
    r"(?i)(?:^|_)(?:stats?|statistics|metrics?|info|infos|logs?|logging\w*|log_\w+|summary|tb\w*|monitor\w*)$"
)

# What is counted, and has no graph wherever it was made.
COUNTED: Final = re.compile(
    r"(?i)(?:^|_)(?:accs?|accuracy|accuracies|corrects?|hits?|counts?|num|recall|f1|auc|top|tp|fp|confusion)(?:_|\d|$)"
)

# What runs one step of training and gives its loss.
STEPS: Final = re.compile(
    r"(?i)^_*(?:train|train_\w+|\w*_?train_step|update\w*|learn\w*|optimi[sz]e\w*|fit_batch|step_\w+|run_step)$"
)

# What goes backward, or was made to, by its name.
LOSSLIKE: Final = re.compile(
    r"(?i)(?:^|_)(?:loss|losses|nll|elbo|kl|kld|kl_div|entropy|objective|perplexity|mse|bce|ce|cost|penalty)(?:_|\d|$)|"
    r"loss(?:es)?$|^loss"
)

# Methods that keep, adding up or putting by, what they are given call after call.
TAKES_IN: Final = re.compile(
    r"(?i)^_*(?:update\w*|add\w*|append\w*|put\w*|push\w*|record\w*|report\w*|log\w*|track\w*|accumulate\w*|collect\w*|store\w*|"
    r"aggregate\w*|process\w*|observe\w*|feed\w*|register_\w*value\w*|write\w*|save_\w*|batch_done|on_batch_end|__call__|step\w*)$"
)

# Classes that keep for numbers and curves; and those that keep for a gradient to come.
COUNTS: Final = re.compile(
    r"(?i)(?:meter|metric|average|averager|avg|stat|stats|statistics|logger|log|history|reporter|tracker|recorder|monitor|"
    r"evaluator|counter|summary|perplexity|score|scorer|storage|visualizer|writer|aggregator|accumulator|running)"
)
REPLAYS: Final = re.compile(
    r"(?i)(?:buffer|memory|replay|rollout|trajectory|episode|transition|agent|policy|optim|scheduler|queue|bank|sampler|trainer|"
    r"dataset|loader|loss|criterion)"
)
