"""The keyed work queue and its parts, modeled on client-go."""
