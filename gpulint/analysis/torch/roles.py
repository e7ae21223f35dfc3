"""What programs call their networks, the methods that run them and the functions that evaluate.

A name proves nothing. Beside other evidence it says what is likely, and every claim that stands on one leaves that open.
"""

from __future__ import annotations

import re
from typing import Final

# Networks, and parts of them, by the last name of what holds one.
NETWORK: Final = re.compile(
    r"(?i)(?:^|_)(?:model|net|network|net[dg]|encoder|decoder|generator|discriminator|backbone|classifier|extractor|"
    r"teacher|student|actor|critic|unet|vae|vocoder|embedder|policy|unwrapped|ddp)(?:_(?:model|net|fn))?\d*$"
)
# Tables of networks: `nets[name](x)`.
NETWORKS: Final = re.compile(
    r"(?i)(?:^|_)(?:nns|nets|networks|models|encoders|decoders|generators|policies|agents)$"
)
# Those that a step runs beside what it trains.
AUXILIARY: Final = re.compile(
    r"(?i)(?:^|_)(?:teacher|reward|rewards|ref|reference|target|ema|frozen|momentum|old)"
    r"(?:_(?:\w+_)?(?:model|net|network|policy|encoder|actor|critic|fn|engine|module))?$"
)

# Methods that run a network, whoever has them.
RUNS: Final = re.compile(
    r"(?i)(?:^|_)(?:forward|forwards|fwd|infer|inference|predict|prediction|predictions|generate|sample|encode|decode|embed|"
    r"embeddings|evaluation_step|eval_step|test_step|valid_step|validation_step|transcribe|synthesi[sz]e|reconstruct|"
    r"translate|logits|log_prob|log_probs|logps|scores|score|classify|denoise|render|segment|detect|represent|features)(?:_|$)"
)
# Methods of the same names that are known to compute no graph, or that prepare and do not run.
RUNS_NOT: Final = re.compile(
    r"(?i)^(?:_?(?:get|set|add|load|save|make|build|init|create|register|update|reset|prepare|is|has|log|print|plot|write|"
    r"setup|restore|from|instantiate|wrap|unwrap|to|configure)_(?!\w*(?:rewards?|logits|logps|scores?|embeddings?|features?|(?:log_)?probs?|predictions?)$))|tokeni[sz]e|_hook$|^sample_(?:batch|data|rate)|config|_size$|_dim$|"
    r"^(?:encode|decode)_(?:batch|text_ids|ids|message|msg|plus)$|batch_decode"
)

# Functions that evaluate, and others that make what is looked at or kept: these train as well now and then.
EVALUATES: Final = re.compile(
    r"(?i)(?:^|_)(?:eval\w*|valid\w*|val|test\w*|infer|inference|predict\w*|dev|transcribe|demo|evaluation)(?:_|$)"
)
TRAINS: Final = re.compile(
    r"(?i)(?:^|_)(?:train\w*|fit|learn|optimi[sz]e\w*|loss\w*|objective|criterion|pretrain\w*|finetune\w*|attack|adapt)(?:_|$)"
)

# What is as often a number for each class of a sample as it is large.
SCORES: Final = re.compile(
    r"(?i)(?:^|_)(?:outputs?|outs?|logits?|scores?|probs?|probabilities|preds?|predictions?|predicted|hat|softmax|sigmoid|confidences?)$"
)

# What a program calls what it shows, draws and writes: who gets a network's output there wants numbers.
SHOWS: Final = re.compile(
    r"(?i)(?:^|_)(?:save|write|plot|draw|show|imshow|imwrite|imsave|display|log|visuali[sz]e|grid|images?|figure|dump|export|"
    r"print|montage)(?:_|$)|^add_(?:image|images|figure|histogram|audio|video|text)$"
)
