"""Limits that memory is held against: sizes that are asked for, and peaks that a project has committed."""
