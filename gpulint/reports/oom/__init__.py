"""What `gpulint oom` finds in a log, for people."""
