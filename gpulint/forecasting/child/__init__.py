"""What runs in the user's interpreter: torch with a graphics card that is not there, and a tape of what it would hold."""
