"""Candidates that need more than a screen, one file a mistake."""
