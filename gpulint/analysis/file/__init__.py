"""What is known of one file and of the project around it, whoever asks."""
