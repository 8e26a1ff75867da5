"""Proxies in front of the API server and of the Admin API that inject faults."""
