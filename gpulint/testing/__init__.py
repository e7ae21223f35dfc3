"""What the pytest plugin does: limits on tests, peaks that are committed, what tests leave behind, frames that failures pin."""
