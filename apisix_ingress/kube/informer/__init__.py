"""Reflectors: each keeps one store in sync with one collection of the API server."""
