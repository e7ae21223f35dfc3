"""What runs in the user's interpreter: the script under the harness, its steps, and when it ends."""
