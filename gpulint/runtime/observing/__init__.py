"""What is counted while the script runs: lines, calls, forwards, steps."""
