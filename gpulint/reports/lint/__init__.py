"""Formats of findings: for people, for services and other programs, and SARIF."""
