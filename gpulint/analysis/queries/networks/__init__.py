"""What is asked of a network: where it runs, in which mode, where it lies, and whether it trains."""
