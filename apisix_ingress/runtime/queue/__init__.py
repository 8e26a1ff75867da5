"""The keyed work queue and its parts, after client-go."""
