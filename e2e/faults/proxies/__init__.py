"""Proxies that inject faults by rule, in front of the API server and of the Admin API, and a request journal."""
