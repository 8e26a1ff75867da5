"""Upstreams: backends, endpoints and settings."""
