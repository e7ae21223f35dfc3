"""Does the place that keeps a value outlive the step, and what becomes of what is piled up there?"""
