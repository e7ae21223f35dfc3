"""The language server: what editors see of gpulint while code is typed. Needs pygls; nothing else of gpulint imports it."""
