"""Providers of the Gateway API."""
