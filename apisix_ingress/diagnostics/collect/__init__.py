"""Reads objects, gateways and the lease once, for one command."""
