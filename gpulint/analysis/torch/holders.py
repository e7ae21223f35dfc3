"""Names of attributes that often stand for something that holds networks. A name is only ever a hint."""

from __future__ import annotations

import re
from typing import Final

HOLDS_NETWORKS: Final = re.compile(
    r"(?i)(?:^|_)(?:model|models|net|network|backbone|encoder|policy|actor|critic|agent|agents|world|inner_world|"
    r"generator|discriminator|transformer|unet|vae|pipe|learner|estimator)$"
)

# What a replay memory is told of the samples that it gave.
PRIORITY_METHODS: Final = frozenset(
    "update_priorities update_priority set_priorities set_priority batch_update update_td_errors".split()
)

# Methods that train on one batch and give back what they made of it.
STEP_METHODS: Final = frozenset(
    "train_step training_step train_batch train_on_batch forward_backward forward_backward_step run_iteration "
    "train_one_batch train_minibatch optimize_step update_step".split()
)
