"""Proxies that stand before the API server and before the Admin API and play faults."""
