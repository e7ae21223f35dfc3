"""Formats of findings, one file each with ``write(report, out)``."""
