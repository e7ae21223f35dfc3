"""Will it fit? Runs a script without a GPU, with devices faked, and says what it would take on one.

`child/` and `emulating/` run in the user's interpreter and import torch; the rest does not.
"""
