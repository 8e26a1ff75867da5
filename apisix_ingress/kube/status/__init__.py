"""Writes statuses and Events to the API server."""
