"""Reflectors: each keeps one store equal to one collection of the API server."""
