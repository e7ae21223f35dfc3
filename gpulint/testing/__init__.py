"""Limits on memory: of runs (`gate`), and of tests, which is what the pytest plugin does; `baselines` are the peaks that both commit."""
