"""Fixes that are tried: the script runs sampled as it is, twice, then with fixes laid over its files, and what comes of it is
compared. Composes the linter, whose fixes are data, and the verifier, which knows no linter."""
