"""Proxies that play faults by rule: before the API server, and before the Admin API, with a journal of its requests."""
