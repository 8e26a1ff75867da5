"""Readers and writers of small text formats: durations, sizes, selectors, YAML. Pure."""
