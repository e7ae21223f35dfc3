"""Repairs become text: libcst edits, imports tidied, files written whole or not at all."""
