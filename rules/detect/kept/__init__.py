"""What is kept, or given away, together with a graph where the flow of values loses sight of it: one file a mistake."""
