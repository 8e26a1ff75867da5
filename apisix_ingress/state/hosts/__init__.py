"""Hosts: which namespace has claimed one, and which namespaces share one."""
